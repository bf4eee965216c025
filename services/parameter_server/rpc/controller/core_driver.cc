#include "services/parameter_server/rpc/controller/core_driver.h"

#include <chrono>
#include <utility>

namespace adamant::parameter_server {
namespace {

// Two, so that one large update does not keep all others waiting.
constexpr int kAppliers = 2;

}  // namespace

CoreDriver::CoreDriver(Links links, const ReplicationMetrics& metrics)
    : links_(std::move(links)), metrics_(metrics) {}

CoreDriver::~CoreDriver() { Stop(); }

void CoreDriver::Start(ParameterServer& core, Clock::Duration tick) {
  threads_.emplace_back([this, &core, tick] { KeepTicking(core, tick); });
  for (int i = 0; i < kAppliers; ++i) {
    threads_.emplace_back([this, &core] { KeepApplying(core); });
  }
}

void CoreDriver::Stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    ticker_changed_.NotifyAll();
    appliers_changed_.NotifyAll();
  }
  threads_.clear();
}

void CoreDriver::SendToPeer(const ServerId& to, PeerMessage message) {
  links_.peers.Send(to, std::move(message));
}

void CoreDriver::Propose(const Proposal& proposal) {
  const MutexLock lock(mutex_);
  proposals_.push_back(proposal);
  ticker_changed_.NotifyOne();
}

void CoreDriver::Report(const BucketReport& report) {
  const MutexLock lock(mutex_);
  reports_.push_back(report);
  ticker_changed_.NotifyOne();
}

void CoreDriver::WantApply() {
  const MutexLock lock(mutex_);
  if (!std::exchange(apply_, true)) {
    appliers_changed_.NotifyOne();
  }
}

void CoreDriver::WantStorage() { links_.want_storage(); }

std::vector<std::uint64_t> CoreDriver::Turns() const {
  const MutexLock lock(mutex_);
  return turns_.all();
}

// What a tick and others want to tell the controller together goes out as one message.
void CoreDriver::KeepTicking(ParameterServer& core, Clock::Duration tick) {
  using std::chrono::steady_clock;
  steady_clock::time_point next = steady_clock::now();
  std::optional<std::size_t> turn;
  while (true) {
    std::vector<Proposal> proposals;
    std::vector<BucketReport> reports;
    {
      const MutexLock lock(mutex_);
      if (turn) {
        turns_.End(*turn);
      }
      if (!stopped_ && proposals_.empty() && reports_.empty()) {
        const auto left = next - steady_clock::now();
        if (left > steady_clock::duration::zero()) {
          ticker_changed_.WaitFor(mutex_, left);
        }
      }
      if (stopped_) {
        return;
      }
      proposals.swap(proposals_);
      reports.swap(reports_);
      turn = turns_.Begin();
    }
    SendToController(std::move(proposals), reports);
    if (steady_clock::now() >= next) {
      next = steady_clock::now() + tick;
      core.Tick();
    }
  }
}

void CoreDriver::SendToController(std::vector<Proposal> proposals,
                                  const std::vector<BucketReport>& reports) {
  if (!proposals.empty()) {
    links_.controller.Send(protocol::Proposals{std::move(proposals)});
  }
  if (!reports.empty()) {
    const protocol::BucketsReady ready = ReadyOf(reports);
    links_.controller.Send(ready);
    for (const protocol::BucketState& state : ready.buckets) {
      metrics_.ObserveFailover(state);
    }
  }
}

void CoreDriver::KeepApplying(ParameterServer& core) {
  std::optional<std::size_t> turn;
  while (true) {
    {
      const MutexLock lock(mutex_);
      if (turn) {
        turns_.End(*turn);
      }
      while (!apply_ && !stopped_) {
        appliers_changed_.Wait(mutex_);
      }
      if (stopped_) {
        return;
      }
      apply_ = false;
      turn = turns_.Begin();
    }
    core.ApplyCommitted();
  }
}

}  // namespace adamant::parameter_server
