#include "tests/simulation/worker_process.h"

#include <algorithm>
#include <utility>

#include "services/common/base/status_macros.h"
#include "tests/simulation/convert.h"

namespace adamant::simulation {
namespace {

constexpr std::uint64_t kMaxMessageBytes = 3 * Setup::kElements * sizeof(float);
constexpr auto kStopPatience = seconds(4);
constexpr auto kKeepLeasesEvery = seconds(1);

}  // namespace

WorkerProcess::WorkerProcess(World& world,
                             const ProcessStart& start,
                             std::function<void(std::string)> exited)
    : MemberProcess(world, start, std::move(exited)) {}

absl::Status WorkerProcess::Start(const controller::Welcome& /*welcome*/) {
  const Setup& setup = world_.setup;
  replica_ = std::make_unique<worker::Replica>(
      setup.replica, setup.graph, setup.layout, setup.plan, [this] { PlanTurn(Now()); });
  exchange_ = std::make_unique<worker::Exchange>(*replica_, kMaxMessageBytes);
  drained_ = std::make_unique<worker::DrainedServers>(*replica_);
  for (std::size_t i = 0; i < setup.replica.threads; ++i) {
    trainers_.push_back(
        std::make_unique<Trainer>(world_, *replica_, i, Self(), life, [this] { Ring(); }));
    if (world_.Has(Mutation::kEarlyAcknowledge)) {
      trainers_.back()->on_trained = [this](const worker::Lease& lease) {
        AcknowledgeEarly(lease);
      };
    }
  }
  keep_leases_at_ = Now();
  PlanTurn(Now());
  Ring();
  return absl::OkStatus();
}

void WorkerProcess::OnControl(const controller::ControllerMessage& message) {
  if (const auto* view = std::get_if<controller::Membership>(&message)) {
    Post([this, view = *view] { UpdatePeers(view); });
  } else if (const auto* flush = std::get_if<controller::FlushWorker>(&message)) {
    if (world_.Has(Mutation::kEarlyFlushed)) {
      Tell(controller::WorkerFlushed{flush->epoch});
    }
    Post([this, epoch = flush->epoch] { exchange_->Flush(epoch); });
  }
}

controller::Heartbeat WorkerProcess::MakeHeartbeat() {
  const worker::ExchangeStatistics statistics = exchange_->statistics();
  return {.progress =
              controller::WorkerProgress{.pushes_acknowledged = statistics.pushes_acknowledged,
                                         .pushes_refused = statistics.pushes_refused,
                                         .updates_lost = statistics.updates_lost}};
}

void WorkerProcess::Stop() {
  stopping_ = true;
  Post([this] { exchange_->Stop(); });
  After(kStopPatience, [this] {
    if (!std::exchange(left_, true)) {
      Leave();
    }
  });
}

void WorkerProcess::CheckLosses() {
  if (exchange_ != nullptr && exchange_->Stopped()) {
    world_.updates.CheckLosses(Self(), exchange_->statistics().updates_lost);
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
  if (!status_.ok() || (stopping_ && exchange_->Stopped())) {
    left_ = true;
    return Leave();
  }
  if (Now() >= keep_leases_at_) {
    KeepLeases();
    keep_leases_at_ = Now() + kKeepLeasesEvery;
  }
  Clock::TimePoint next = keep_leases_at_;
  if (const auto advance = exchange_->NextAdvance(); advance.has_value()) {
    next = std::min(next, *advance);
  }
  PlanTurn(next);
  Ring();
}

absl::Status WorkerProcess::Advance() {
  for (const std::function<void()>& task : std::exchange(tasks_, {})) {
    task();
  }
  ADAMANT_RETURN_IF_ERROR(status_);
  ADAMANT_RETURN_IF_ERROR(exchange_->Advance(Now()));
  SendMessages();
  if (const auto epoch = exchange_->TakeFlushed(); epoch.has_value()) {
    Tell(controller::WorkerFlushed{*epoch});
  }
  return absl::OkStatus();
}

void WorkerProcess::KeepLeases() {
  for (auto& [key, peer] : peers_) {
    if (key.first == StreamKind::kWork) {
      SendTo(key, data_server::KeepAlive{Self()});
    }
  }
}

// Somebody may have rung a bell.
void WorkerProcess::Ring() {
  for (const auto& trainer : trainers_) {
    trainer->Wake();
  }
  ReceiveHeldUp();
}

// --- Links

void WorkerProcess::UpdatePeers(const controller::Membership& view) {
  if (view.version < membership_version_) {
    return;
  }
  membership_version_ = view.version;
  map_ = ClusterMapOf(view);
  exchange_->OnMap(map_);
  std::map<PeerKey, const controller::Member*> wanted;
  for (const controller::Member& member : view.members) {
    if (member.id.role != controller::Role::kWorker) {
      const bool data = member.id.role == controller::Role::kDataServer;
      wanted[{data ? StreamKind::kWork : StreamKind::kExchange, member.id.slot}] = &member;
    }
  }
  std::erase_if(peers_, [&](const auto& entry) {
    const auto& [key, peer] = entry;
    const auto found = wanted.find(key);
    if (found != wanted.end() && found->second->address == peer.address &&
        found->second->incarnation == peer.incarnation) {
      return false;
    }
    world_.network.Close(peer.stream, *this);
    if (key.first == StreamKind::kWork) {
      exchange_->OnDataServer(key.second, false);
      drained_->Remove(key.second);
    } else {
      exchange_->OnParameterServer(key.second, false);
    }
    return true;
  });
  for (const auto& [key, member] : wanted) {
    const auto [entry, added] = peers_.try_emplace(key);
    if (added) {
      Peer& peer = entry->second;
      peer.address = member->address;
      peer.incarnation = member->incarnation;
      peer.number = ++peers_made_;
      peer.backoff.emplace(BackoffOptions{}, MixSeed(incarnation(), key.second));
      if (key.first == StreamKind::kWork) {
        drained_->Set(key.second, false);
      }
      Connect(key, peer.number);
    }
  }
}

void WorkerProcess::Connect(PeerKey key, std::uint64_t number) {
  const auto found = peers_.find(key);
  if (found == peers_.end() || found->second.number != number) {
    return;
  }
  Peer& peer = found->second;
  peer.stream = world_.network.Open(*this, peer.address, key.first);
  if (key.first == StreamKind::kWork) {
    Send(peer.stream,
         data_server::Hello{.worker = Self(),
                            .window = static_cast<std::uint32_t>(replica_->window())});
  } else {
    Send(peer.stream,
         ExchangeHello{
             parameter_server::Writer{.slot = start().id.slot, .incarnation = incarnation()}});
  }
}

void WorkerProcess::Reconnect(PeerKey key) {
  Peer& peer = peers_.at(key);
  if (peer.connected) {
    peer.backoff->Reset();
    SetConnected(key, false);
  }
  peer.stream = 0;
  peer.ended = false;
  After(peer.backoff->Next(), [this, key, number = peer.number] { Connect(key, number); });
}

void WorkerProcess::SetConnected(PeerKey key, bool connected) {
  peers_.at(key).connected = connected;
  if (key.first == StreamKind::kWork) {
    if (!connected) {
      drained_->Set(key.second, false);
    }
    Post([this, server = key.second, connected] { exchange_->OnDataServer(server, connected); });
  } else {
    Post([this, server = key.second, connected] {
      exchange_->OnParameterServer(server, connected);
    });
  }
}

WorkerProcess::Peer* WorkerProcess::Find(StreamId stream, PeerKey& key) {
  for (auto& [each, peer] : peers_) {
    if (peer.stream == stream) {
      key = each;
      return &peer;
    }
  }
  return nullptr;
}

void WorkerProcess::OnServiceEnded(StreamId stream, StreamKind /*kind*/) {
  PeerKey key;
  Peer* const peer = Find(stream, key);
  if (peer == nullptr) {
    return;
  }
  if (!peer->held_up.empty()) {
    peer->held_up.erase(peer->held_up.begin() + 1, peer->held_up.end());
    peer->ended = true;
    return;
  }
  Reconnect(key);
}

void WorkerProcess::OnServiceMessage(StreamId stream, StreamKind kind, Message& message) {
  PeerKey key;
  Peer* const peer = Find(stream, key);
  if (peer == nullptr || left_) {
    return;
  }
  if (kind == StreamKind::kWork) {
    OnWork(key, *peer, message);
  } else if (const auto* hello = std::get_if<ExchangeHelloReply>(&message)) {
    if (!hello->refused) {
      SetConnected(key, true);
    }
  } else if (const auto* push = std::get_if<worker::PushReply>(&message)) {
    Post([this, reply = *push] {
      world_.updates.Replied(Self(), reply);
      status_.Update(exchange_->OnPushReply(reply, Now()));
    });
  } else if (const auto* fetch = std::get_if<FetchAnswer>(&message)) {
    Post([this, answer = *fetch] {
      std::size_t next = 0;
      const auto read = [&](std::span<float> values) {
        while (answer.values[next].outcome != parameter_server::FetchOutcome::kFound) {
          ++next;
        }
        std::ranges::copy(answer.values[next++].values, values.begin());
        return absl::OkStatus();
      };
      status_.Update(exchange_->OnFetchReply(answer.reply, read, Now()));
    });
  }
  Ring();
}

// --- Work

void WorkerProcess::OnWork(PeerKey key, Peer& peer, Message& message) {
  if (const auto* hello = std::get_if<data_server::HelloAnswer>(&message)) {
    if (hello->refused.empty()) {
      SetConnected(key, true);
    }
    return;
  }
  if (!peer.held_up.empty() || !Receive(key, message)) {
    peer.held_up.push_back(std::move(message));
  }
}

// Takes a message in; false while there is no slot for a batch.
bool WorkerProcess::Receive(PeerKey key, const Message& message) {
  if (const auto* deal = std::get_if<data_server::Deal>(&message)) {
    worker::Batch* const batch = replica_->batches.TakeFree();
    if (batch == nullptr) {
      return false;
    }
    const data_server::PartLayout layout(
        deal->lease.batch.kind == data_server::WorkKind::kTrain ? world_.setup.train_examples
                                                                : world_.setup.validation_examples,
        deal->lease.batch.kind == data_server::WorkKind::kTrain ? world_.setup.job.data_servers : 1,
        world_.setup.batch_size);
    batch->lease = ToWorker(deal->lease);
    batch->examples = layout.BatchExamples(deal->lease.batch.part, deal->lease.batch.index);
    batch->job_examples = deal->job_examples;
    batch->snapshot = deal->snapshot;
    if (batch->lease.kind == worker::WorkKind::kTrain) {
      drained_->Set(key.second, false);
    } else {
      Post([this, snapshot = deal->snapshot] { exchange_->WantSnapshot(snapshot); });
    }
    replica_->batches.Put(batch);
    replica_->bell.Ring();
  } else if (const auto* answer = std::get_if<data_server::Acknowledged>(&message)) {
    std::vector<worker::Lease> leases;
    for (const data_server::Lease& lease : answer->leases) {
      leases.push_back(ToWorker(lease));
    }
    Post([this, leases = std::move(leases)] { exchange_->OnAcknowledged(leases); });
  } else if (std::holds_alternative<data_server::Drained>(message)) {
    drained_->Set(key.second, true);
  } else if (const auto* closed = std::get_if<data_server::EpochClosed>(&message)) {
    drained_->Set(key.second, false);
    Post([this, epoch = closed->epoch] { exchange_->OnEpochClosed(epoch); });
  }
  return true;
}

void WorkerProcess::ReceiveHeldUp() {
  for (auto& [key, peer] : peers_) {
    while (!peer.held_up.empty() && Receive(key, peer.held_up.front())) {
      peer.held_up.pop_front();
    }
    if (peer.held_up.empty() && peer.ended) {
      Reconnect(key);
    }
  }
}

// --- Messages

void WorkerProcess::SendTo(PeerKey key, Message message) {
  if (const auto peer = peers_.find(key); peer != peers_.end() && peer->second.connected) {
    Send(peer->second.stream, std::move(message));
  }
}

void WorkerProcess::SendMessages() {
  for (const worker::Exchange::Message& message : exchange_->TakeMessages()) {
    if (const auto* push = std::get_if<worker::PushMessage>(&message)) {
      SendPush(*push);
    } else if (const auto* fetch = std::get_if<worker::FetchMessage>(&message)) {
      SendFetch(*fetch);
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
  frame->payload = exchange_->PayloadOf(push);
  if (world_.Has(Mutation::kChangedRetry)) {
    bool again = false;
    for (const worker::ShardUpdate& update : push.updates) {
      again = !sent_.insert({push.sequence, update.shard}).second || again;
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
    std::ranges::rotate(values, values.begin() + 1);
  }
}

void WorkerProcess::SendFetch(worker::FetchMessage fetch) {
  if (world_.Has(Mutation::kEvaluatesOtherModel) && fetch.snapshot != 0) {
    const std::uint64_t asked = std::exchange(fetch.snapshot, last_snapshot_);
    last_snapshot_ = asked;
  }
  SendTo({StreamKind::kExchange, fetch.server}, std::move(fetch));
}

void WorkerProcess::SendResults(const worker::AcknowledgeMessage& acknowledge) {
  data_server::Acknowledge message{.worker = Self(), .results = {}};
  for (const worker::LeaseResult& result : acknowledge.results) {
    message.results.push_back(ToDataServer(result));
    if (result.lease.kind == worker::WorkKind::kTrain) {
      world_.updates.Acknowledging(Self(), result.lease);
    }
    world_.work.Acknowledging(message.results.back().lease.batch);
  }
  SendTo({StreamKind::kWork, acknowledge.server}, std::move(message));
}

void WorkerProcess::SendHandBack(const worker::HandBackMessage& hand_back) {
  data_server::HandBack message{.worker = Self(), .leases = {}};
  for (const worker::Lease& lease : hand_back.leases) {
    message.leases.push_back(ToDataServer(lease));
    if (lease.kind == worker::WorkKind::kTrain) {
      world_.updates.HandingBack(Self(), lease);
    }
  }
  SendTo({StreamKind::kWork, hand_back.server}, std::move(message));
}

void WorkerProcess::AcknowledgeEarly(const worker::Lease& lease) {
  if (lease.part < map_.part_owners.size()) {
    SendResults({.server = map_.part_owners[lease.part], .results = {{.lease = lease}}});
  }
}

}  // namespace adamant::simulation
