#include "tests/simulation/job/processes/worker_process.h"

#include <algorithm>
#include <utility>

#include "services/common/base/status_macros.h"

namespace adamant::simulation {
namespace {

constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{3} * Setup::kElements * sizeof(float);
constexpr auto kStopTimeout = seconds(4);
constexpr auto kKeepLeasesEvery = seconds(1);

}  // namespace

WorkerProcess::WorkerProcess(World& world,
                             const ProcessStart& start,
                             std::function<void(std::string)> exited)
    : MemberProcess(world, start, std::move(exited)) {}

absl::Status WorkerProcess::Start(const controller::Welcome& /*welcome*/) {
  const Setup& setup = world_.setup;
  worker_ = std::make_unique<worker::Worker>(
      worker::Worker::Options{.training = setup.training,
                              .synchroniser = {.max_message_bytes = kMaxMessageBytes,
                                               .retain_bytes = setup.retain_bytes}},
      setup.graph,
      setup.layout,
      setup.plan,
      [this] { PlanTurn(Now()); });
  drained_ = std::make_unique<worker::DrainedServers>(worker_->intake());
  for (std::size_t i = 0; i < setup.training.threads; ++i) {
    trainers_.push_back(
        std::make_unique<Trainer>(world_, *worker_, i, Self(), life, [this] { Notify(); }));
    if (world_.Has(Mutation::kEarlyAcknowledge)) {
      trainers_.back()->on_trained = [this](const worker::Lease& lease) {
        AcknowledgeEarly(lease);
      };
    }
  }
  keep_leases_at_ = Now();
  PlanTurn(Now());
  Notify();
  return absl::OkStatus();
}

void WorkerProcess::OnControl(const controller::ControllerMessage& message) {
  if (const auto* view = std::get_if<controller::Membership>(&message)) {
    Post([this, view = *view] { UpdatePeers(view); });
  } else if (const auto* flush = std::get_if<controller::FlushWorker>(&message)) {
    if (world_.Has(Mutation::kEarlyFlushed)) {
      Tell(controller::WorkerFlushed{flush->epoch});
    }
    Post([this, epoch = flush->epoch] { worker_->Flush(epoch); });
  } else if (const auto* pause = std::get_if<controller::PausePushes>(&message)) {
    Post([this, n = pause->checkpoint] { worker_->synchroniser().Pause(n, clock_.Now()); });
  } else if (const auto* resume = std::get_if<controller::ResumePushes>(&message)) {
    Post([this, n = resume->checkpoint] { worker_->synchroniser().Resume(n); });
  }
}

controller::Heartbeat WorkerProcess::MakeHeartbeat() {
  const worker::SynchroniserStatistics statistics = worker_->synchroniser().statistics();
  return {.progress =
              controller::WorkerProgress{.trained_examples = trained_examples_,
                                         .loss_sum = static_cast<double>(trained_examples_),
                                         .pushes_acknowledged = statistics.pushes_acknowledged,
                                         .pushes_refused = statistics.pushes_refused,
                                         .updates_lost = statistics.updates_lost}};
}

void WorkerProcess::Stop() {
  stopping_ = true;
  Post([this] { worker_->synchroniser().Stop(); });
  After(kStopTimeout, [this] {
    if (!std::exchange(left_, true)) {
      Leave();
    }
  });
}

void WorkerProcess::CheckLosses() {
  if (worker_ == nullptr) {
    return;
  }
  const std::uint64_t lost = worker_->synchroniser().statistics().updates_lost;
  world_.updates.CheckRetained(Self(), lost);
  if (worker_->synchroniser().Stopped()) {
    world_.updates.CheckLosses(Self(), lost);
  }
}

// --- The loop

void WorkerProcess::Post(std::function<void()> task) {
  tasks_.push_back(std::move(task));
  PlanTurn(Now());
}

void WorkerProcess::PlanTurn(Clock::TimePoint time) {
  time = std::max(time, Now()) + world_.scheduler.Random(microseconds(1), microseconds(300));
  if (turn_at_.has_value() && *turn_at_ <= time) {
    return;
  }
  turn_at_ = time;
  world_.scheduler.At(time, life, [this, time] {
    if (turn_at_ == time) {
      turn_at_.reset();
      Turn();
    }
  });
}

void WorkerProcess::Turn() {
  if (left_) {
    return;
  }
  status_.Update(Advance());
  if (!status_.ok()) {
    Fail(status_);
  }
  if (!status_.ok() || (stopping_ && worker_->synchroniser().Stopped())) {
    left_ = true;
    return Leave();
  }
  if (Now() >= keep_leases_at_) {
    KeepLeases();
    keep_leases_at_ = Now() + kKeepLeasesEvery;
  }
  Clock::TimePoint next = keep_leases_at_;
  if (const auto advance = worker_->synchroniser().NextAdvance(); advance.has_value()) {
    next = std::min(next, clock_.ToWorld(*advance));
  }
  PlanTurn(next);
  Notify();
}

absl::Status WorkerProcess::Advance() {
  for (const std::function<void()>& task : std::exchange(tasks_, {})) {
    task();
  }
  ADAMANT_RETURN_IF_ERROR(status_);
  ADAMANT_RETURN_IF_ERROR(worker_->synchroniser().Advance(clock_.Now()));
  SendMessages();
  if (const auto epoch = worker_->synchroniser().TakeFlushed(); epoch.has_value()) {
    Tell(controller::WorkerFlushed{*epoch});
  }
  if (const auto paused = worker_->synchroniser().TakePaused(); paused.has_value()) {
    Tell(*paused);
  }
  return absl::OkStatus();
}

void WorkerProcess::KeepLeases() {
  for (auto& [key, peer] : peers_) {
    if (key.first == StreamKind::kWork) {
      SendTo(key, data_server::KeepAlive{.worker = Self(), .controller_heard = attending()});
    }
  }
}

// Somebody may have rung a notifier.
void WorkerProcess::Notify() {
  for (const auto& trainer : trainers_) {
    trainer->Wake();
  }
  ReceiveHeldUp();
}

// --- Messages

void WorkerProcess::SendTo(PeerKey key, Message message) {
  if (const auto peer = peers_.find(key); peer != peers_.end() && peer->second.connected) {
    Send(peer->second.stream, std::move(message));
  }
}

void WorkerProcess::SendMessages() {
  for (const worker::Synchroniser::Message& message : worker_->synchroniser().TakeMessages()) {
    if (const auto* push = std::get_if<worker::PushMessage>(&message)) {
      SendPush(*push);
    } else if (const auto* fetch = std::get_if<worker::FetchMessage>(&message)) {
      SendFetch(*fetch);
    } else if (const auto* flush = std::get_if<worker::FlushMessage>(&message)) {
      SendTo({StreamKind::kExchange, flush->server}, *flush);
    } else if (const auto* acknowledge = std::get_if<worker::AcknowledgeMessage>(&message)) {
      SendResults(*acknowledge);
    } else {
      SendHandBack(std::get<worker::HandBackMessage>(message));
    }
  }
}

void WorkerProcess::SendPush(const worker::PushMessage& push) {
  auto frame = std::make_shared<PushFrame>();
  frame->header = push;
  frame->payload = worker_->synchroniser().PayloadOf(push);
  if (world_.Has(Mutation::kChangedRetry)) {
    bool again = false;
    for (const worker::ShardUpdate& update : push.updates) {
      again = !sent_.insert({push.sequence(), update.shard}).second || again;
    }
    if (again) {
      ChangeBytes(*frame);
    }
  }
  world_.updates.Sent(Self(), *frame);
  SendTo({StreamKind::kExchange, push.server}, std::move(frame));
}

// Moves what the push adds to other elements.
void WorkerProcess::ChangeBytes(PushFrame& frame) {
  frame.Copy();
  for (std::vector<float>& values : frame.copies) {
    if (!values.empty()) {
      std::rotate(values.begin(), values.begin() + 1, values.end());
    }
  }
}

void WorkerProcess::SendFetch(worker::FetchMessage fetch) {
  if (world_.Has(Mutation::kEvaluatesOtherModel) && fetch.snapshot != 0) {
    const std::uint64_t asked = std::exchange(fetch.snapshot, last_snapshot_);
    last_snapshot_ = asked;
  }
  const worker::ServerSlot server = fetch.server;
  SendTo({StreamKind::kExchange, server}, std::move(fetch));
}

void WorkerProcess::SendResults(const worker::AcknowledgeMessage& acknowledge) {
  data_server::Acknowledge message{.worker = Self(), .results = {}};
  for (const worker::LeaseResult& result : acknowledge.results) {
    message.results.push_back(result);
    if (result.lease.batch.kind == worker::WorkKind::kTrain) {
      world_.updates.Acknowledging(Self(), result.lease);
      trained_examples_ += result.examples;
    }
    world_.work.Acknowledging(message.results.back().lease.batch);
  }
  SendTo({StreamKind::kWork, acknowledge.server}, std::move(message));
}

void WorkerProcess::SendHandBack(const worker::HandBackMessage& hand_back) {
  data_server::HandBack message{.worker = Self(), .leases = {}};
  for (const worker::Lease& lease : hand_back.leases) {
    message.leases.push_back(lease);
    if (lease.batch.kind == worker::WorkKind::kTrain) {
      world_.updates.HandingBack(Self(), lease);
    }
  }
  SendTo({StreamKind::kWork, hand_back.server}, std::move(message));
}

void WorkerProcess::AcknowledgeEarly(const worker::Lease& lease) {
  if (lease.batch.part < placement_.part_owners.size()) {
    SendResults(
        {.server = placement_.part_owners[lease.batch.part], .results = {{.lease = lease}}});
  }
}

}  // namespace adamant::simulation
