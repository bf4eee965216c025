// The links of a simulated worker: streams to all servers, opened again whenever they break, and
// what data servers send on them.

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/simulation/job/processes/worker_process.h"

namespace adamant::simulation {

void WorkerProcess::UpdatePeers(const controller::Membership& view) {
  if (view.version < membership_version_) {
    return;
  }
  membership_version_ = view.version;
  placement_ = worker::PlacementViewOf(view);
  placement_.workers =
      1;  // so that no correction depends on how many there are: servers get none here
  worker_->OnPlacement(placement_);
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
    if (peer.connected) {
      SetConnected(key, false);  // after a word of its connection that still waits in the loop
    }
    if (key.first == StreamKind::kWork) {
      worker_->intake().OnDataServer(key.second, false);
      drained_->Remove(key.second);
    } else {
      worker_->synchroniser().OnParameterServer(key.second, false);
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
                            .window = static_cast<std::uint32_t>(worker_->intake().window())});
  } else {
    Send(peer.stream,
         ExchangeHello{.writer = parameter_server::WorkerId{.slot = start().id.slot,
                                                            .incarnation = incarnation()},
                       .attempt = attempt()});
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
    Post([this, server = key.second, connected] {
      worker_->intake().OnDataServer(server, connected);
    });
  } else {
    Post([this, server = key.second, connected] {
      worker_->synchroniser().OnParameterServer(server, connected);
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
      status_.Update(worker_->synchroniser().OnPushReply(reply, clock_.Now()));
    });
  } else if (const auto* flush = std::get_if<worker::FlushReply>(&message)) {
    Post([this, reply = *flush] { status_.Update(worker_->synchroniser().OnFlushReply(reply)); });
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
      status_.Update(worker_->synchroniser().OnFetchReply(answer.reply, read, clock_.Now()));
    });
  }
  Notify();
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

// Takes a message in; false while a batch is to wait for a slot.
bool WorkerProcess::Receive(PeerKey key, const Message& message) {
  if (const auto* dispatch = std::get_if<data_server::Dispatch>(&message)) {
    const data_server::BatchId& dispatched = dispatch->lease.batch;
    Peer& peer = peers_.at(key);
    if (dispatched.kind == data_server::WorkKind::kTrain && dispatched.epoch > peer.begun_epoch) {
      peer.begun_epoch = dispatched.epoch;
      Post([this, epoch = dispatched.epoch] { worker_->synchroniser().OnEpochBegun(epoch); });
    }
    worker::Batch* const batch = worker_->intake().TakeSlot();
    if (batch == nullptr) {
      if (!worker_->intake().settling()) {
        return false;
      }
      Post([this, lease = dispatch->lease] { worker_->intake().OnNoSlot(lease); });
      return true;
    }
    const data_server::PartLayout layout(dispatch->lease.batch.kind == data_server::WorkKind::kTrain
                                             ? world_.setup.train_examples
                                             : world_.setup.validation_examples,
                                         dispatch->lease.batch.kind == data_server::WorkKind::kTrain
                                             ? world_.setup.job.data_servers
                                             : 1,
                                         world_.setup.batch_size);
    batch->lease = dispatch->lease;
    batch->examples = layout.BatchExamples(dispatch->lease.batch.part, dispatch->lease.batch.index);
    batch->job_examples = dispatch->job_examples;
    batch->ahead_examples = dispatch->ahead_examples;
    batch->snapshot = dispatch->snapshot;
    if (batch->lease.batch.kind == worker::WorkKind::kTrain) {
      drained_->Set(key.second, false);
    } else {
      Post([this, epoch = dispatch->lease.batch.epoch, snapshot = dispatch->snapshot] {
        worker_->synchroniser().WantSnapshot(epoch, snapshot);
      });
    }
    worker_->intake().Put(batch);
  } else if (const auto* answer = std::get_if<data_server::Acknowledged>(&message)) {
    std::vector<worker::Lease> leases;
    for (const data_server::Lease& lease : answer->leases) {
      leases.push_back(lease);
    }
    Post([this, leases = std::move(leases)] { worker_->intake().OnAcknowledged(leases); });
  } else if (std::holds_alternative<data_server::Drained>(message)) {
    drained_->Set(key.second, true);
  } else if (const auto* closed = std::get_if<data_server::EpochClosed>(&message)) {
    drained_->Set(key.second, false);
    Post([this, epoch = closed->epoch] { worker_->intake().OnEpochClosed(epoch); });
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

}  // namespace adamant::simulation
