#include "services/worker/rpc/exchange_loop.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/codec/updates.h"
#include "services/worker/rpc/message_to_frame.h"

namespace adamant::worker {
namespace {

constexpr std::chrono::seconds kUnpinTimeout{2};
constexpr std::chrono::seconds kKeepLeasesEvery{1};
constexpr std::chrono::milliseconds kPublishEvery{250};

}  // namespace

ExchangeLoop::ExchangeLoop(const WorkerIdentity& identity, const Parts& parts)
    : worker_(parts.worker),
      inbox_(parts.inbox),
      controller_(parts.controller),
      metrics_(parts.metrics),
      clock_(parts.clock),
      parameter_servers_(identity, kMaxMessageBytes, HandlersOfParameterServers()),
      data_servers_(identity, parts.worker.intake(), HandlersOfDataServers()),
      requests_(parts.clock),
      report_(parts.worker.learner(), parts.clock),
      thread_([this] { Run(); }) {}

ExchangeLoop::~ExchangeLoop() {
  {
    MutexLock lock(mutex_);
    quit_ = true;
  }
  inbox_.Wake();
  thread_.join();
  parameter_servers_.Close();
  data_servers_.Close();
  // Transports let go of payloads soon after their streams have ended.
  const TimePoint end = clock_.Now() + kUnpinTimeout;
  while (worker_.synchroniser().Pinned() && clock_.Now() < end) {
    inbox_.Wait(std::chrono::milliseconds(10));
  }
}

void ExchangeLoop::OnMembership(const protocol::Membership& view) {
  inbox_.Post([this, view] { UpdateServers(view); });
}

void ExchangeLoop::OnFlush(DataEpoch epoch) {
  inbox_.Post([this, epoch] { worker_.Flush(epoch); });
}

void ExchangeLoop::OnPause(std::uint64_t checkpoint) {
  inbox_.Post([this, checkpoint] { worker_.synchroniser().Pause(checkpoint, clock_.Now()); });
}

void ExchangeLoop::OnResume(std::uint64_t checkpoint) {
  inbox_.Post([this, checkpoint] { worker_.synchroniser().Resume(checkpoint); });
}

void ExchangeLoop::Stop(std::chrono::milliseconds timeout) {
  inbox_.Post([this] { worker_.synchroniser().Stop(); });
  MutexLock lock(mutex_);
  stopping_ = true;
  const TimePoint end = clock_.Now() + timeout;
  while (!ended_ && clock_.Now() < end) {
    ended_changed_.WaitFor(mutex_, end - clock_.Now());
  }
}

void ExchangeLoop::Run() {
  for (;;) {
    report_.OnTurn();
    status_.Update(Turn());
    report_.OnTurn();
    const bool stopped = worker_.synchroniser().Stopped();
    {
      MutexLock lock(mutex_);
      ended_ = !status_.ok() || (stopping_ && stopped);
      if (ended_) {
        ended_changed_.NotifyAll();
      }
      if (ended_ || quit_) {
        break;
      }
    }
    const TimePoint now = clock_.Now();
    TimePoint next = std::min(keep_leases_at_, publish_at_);
    if (const auto advance = worker_.synchroniser().NextAdvance(); advance.has_value()) {
      next = std::min(next, *advance);
    }
    inbox_.Wait(next - now);
  }
  Publish();
  if (worker_.synchroniser().diverged()) {
    controller_.FailDiverged(status_);
  } else if (!status_.ok()) {
    controller_.Fail(status_, /*fatal=*/absl::IsInvalidArgument(status_));
  }
}

absl::Status ExchangeLoop::Turn() {
  for (const Inbox::Task& task : inbox_.Take()) {
    task();
  }
  ADAMANT_RETURN_IF_ERROR(status_);
  ADAMANT_RETURN_IF_ERROR(worker_.synchroniser().Advance(clock_.Now()));
  resumption_.Look(worker_.synchroniser().pushes_acknowledged(), clock_.WallNow());
  SendMessages();
  AnswerController();
  const TimePoint now = clock_.Now();
  if (now >= keep_leases_at_) {
    data_servers_.KeepAlive(controller_heard_.load());
    requests_.ForgetOld();
    keep_leases_at_ = now + kKeepLeasesEvery;
  }
  if (now >= publish_at_) {
    Publish();
    publish_at_ = now + kPublishEvery;
  }
  return absl::OkStatus();
}

void ExchangeLoop::AnswerController() {
  if (const auto epoch = worker_.synchroniser().TakeFlushed(); epoch.has_value()) {
    SendProgress();  // the controller closes the epoch's row with what it knows by then
    controller_.Send(protocol::WorkerFlushed{*epoch});
  }
  if (const auto paused = worker_.synchroniser().TakePaused(); paused.has_value()) {
    SendProgress();
    controller_.Send(*paused);
  }
}

void ExchangeLoop::SendProgress() {
  Publish();
  controller_.Send(report_.Read());
}

void ExchangeLoop::Publish() {
  const SynchroniserStatistics statistics = worker_.synchroniser().statistics();
  metrics_.Update(worker_.learner(), statistics, resumption_.timestamp());
  report_.Publish(statistics);
}

// --- Messages

void ExchangeLoop::SendMessages() {
  for (const Synchroniser::Message& message : worker_.synchroniser().TakeMessages()) {
    if (const auto* push = std::get_if<PushMessage>(&message)) {
      rpc::OutgoingFrame frame = FrameOf(*push, worker_.synchroniser().PayloadOf(*push));
      std::uint64_t bytes = 0;
      for (const rpc::LentBytes& piece : frame.payload) {
        bytes += piece.bytes.size();
      }
      metrics_.push_bytes.Increment(static_cast<double>(bytes));
      requests_.OnSent(push->request);
      parameter_servers_.Send(push->server, std::move(frame));
    } else if (const auto* fetch = std::get_if<FetchMessage>(&message)) {
      requests_.OnSent(fetch->request);
      parameter_servers_.Send(fetch->server, FrameOf(*fetch));
    } else if (const auto* flush = std::get_if<FlushMessage>(&message)) {
      parameter_servers_.Send(flush->server, FrameOf(*flush));
    } else if (const auto* acknowledge = std::get_if<AcknowledgeMessage>(&message)) {
      data_servers_.Send(acknowledge->server, FrameOf(*acknowledge));
    } else if (const auto* hand_back = std::get_if<HandBackMessage>(&message)) {
      data_servers_.Send(hand_back->server, FrameOf(*hand_back));
    }
  }
}

void ExchangeLoop::OnReply(rpc::IncomingFrame frame) {
  auto shared = std::make_shared<rpc::IncomingFrame>(std::move(frame));
  inbox_.Post([this, shared] { status_.Update(HandleReply(*shared)); });
}

absl::Status ExchangeLoop::HandleReply(const rpc::IncomingFrame& frame) {
  v1::ExchangeReply reply;
  if (!reply.ParseFromArray(frame.header().data(), static_cast<int>(frame.header().size()))) {
    return absl::InternalError("a parameter server sent a header that is no ExchangeReply");
  }
  const TimePoint now = clock_.Now();
  if (reply.has_push()) {
    requests_.OnReply(reply.id(), metrics_.push_seconds);
    std::uint64_t staleness = 0;
    for (const v1::ShardAck& ack : reply.push().acks()) {
      staleness = std::max(staleness, ack.staleness());
    }
    metrics_.update_staleness.Observe(static_cast<double>(staleness));
    return worker_.synchroniser().OnPushReply(
        {.request = reply.id(), .acks = codec::Decode(reply.push())}, now);
  }
  if (reply.has_flush()) {
    return worker_.synchroniser().OnFlushReply(
        {.request = reply.id(), .persisted = codec::Decode(reply.flush())});
  }
  requests_.OnReply(reply.id(), metrics_.fetch_seconds);
  metrics_.fetch_bytes.Increment(static_cast<double>(frame.payload_bytes()));
  for (const v1::ShardValue& value : reply.fetch().values()) {
    const auto& shards = worker_.learner().layout().shards();
    if (value.outcome() == v1::ShardValue::FOUND &&
        (value.shard() >= shards.size() || value.elements() != shards[value.shard()].size())) {
      return absl::InternalError("a parameter server sent values that do not fit their shard");
    }
  }
  rpc::PayloadReader reader(frame);
  const auto read = [&](std::span<float> values) {
    return reader.Read(std::as_writable_bytes(values));
  };
  return worker_.synchroniser().OnFetchReply(
      {.request = reply.id(), .shards = codec::Decode(reply.fetch())}, read, now);
}

// --- Servers

void ExchangeLoop::UpdateServers(const protocol::Membership& view) {
  if (view.version < membership_version_) {
    return;
  }
  if (view.version > membership_version_) {
    resumption_.OnDisturbed(worker_.synchroniser().pushes_acknowledged());
  }
  membership_version_ = view.version;
  worker_.OnPlacement(PlacementViewOf(view));
  parameter_servers_.Update(view);
  data_servers_.Update(view);
}

ParameterServerHandlers ExchangeLoop::HandlersOfParameterServers() {
  ParameterServerHandlers handlers;
  handlers.on_change = [this](ServerSlot server, bool connected) {
    inbox_.Post([this, server, connected] {
      if (!connected) {
        resumption_.OnDisturbed(worker_.synchroniser().pushes_acknowledged());
      }
      worker_.synchroniser().OnParameterServer(server, connected);
    });
  };
  handlers.on_reply = [this](rpc::IncomingFrame frame) {
    OnReply(std::move(frame));
    return absl::OkStatus();
  };
  handlers.on_stale = [this] {
    inbox_.Post([this] {
      status_.Update(absl::AbortedError("another process has taken this worker's slot"));
    });
  };
  handlers.on_removed = [this](ServerSlot server) {
    worker_.synchroniser().OnParameterServer(server, false);
  };
  return handlers;
}

DataServerHandlers ExchangeLoop::HandlersOfDataServers() {
  DataServerHandlers handlers;
  handlers.work.on_acknowledged = [this](std::vector<Lease> leases) {
    inbox_.Post([this, leases = std::move(leases)] { worker_.intake().OnAcknowledged(leases); });
  };
  handlers.work.on_epoch_closed = [this](DataEpoch epoch) {
    inbox_.Post([this, epoch] { worker_.intake().OnEpochClosed(epoch); });
  };
  handlers.work.on_snapshot_wanted = [this](DataEpoch epoch, std::uint64_t snapshot) {
    inbox_.Post([this, epoch, snapshot] { worker_.synchroniser().WantSnapshot(epoch, snapshot); });
  };
  handlers.work.on_epoch_begun = [this](DataEpoch epoch) {
    inbox_.Post([this, epoch] { worker_.synchroniser().OnEpochBegun(epoch); });
  };
  handlers.work.on_no_slot = [this](const Lease& lease) {
    inbox_.Post([this, lease] { worker_.intake().OnNoSlot(lease); });
  };
  handlers.on_change = [this](ServerSlot server, bool connected) {
    inbox_.Post([this, server, connected] { worker_.intake().OnDataServer(server, connected); });
  };
  handlers.on_misfit = [this](const absl::Status& status) {
    inbox_.Post([this, status] { status_.Update(status); });
  };
  handlers.on_removed = [this](ServerSlot server) { worker_.intake().OnDataServer(server, false); };
  return handlers;
}

}  // namespace adamant::worker
