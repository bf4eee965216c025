#include <array>
#include <memory>
#include <utility>
#include <variant>

#include "services/common/base/check.h"
#include "tests/simulation/replication/processes/cluster.h"
#include "tests/simulation/replication/processes/server_process.h"

// A server, its peers and its writers.
namespace adamant::replication_simulation {

// --- Peers

void ServerProcess::OnPeerMessage(ps::ServerId from, ps::PeerMessage message) {
  if (open_) {
    sabotage_.Distort(from, message);
    Receive(from, message);
  }
}

void ServerProcess::Receive(const ps::ServerId& from, const ps::PeerMessage& message) {
  tap_->TraceAdoption(from, message);
  core_->OnPeerMessage(from, message);
  Settle();
}

void ServerProcess::HasHeard(const ps::ServerId& from,
                             const ps::PeerMessage& message,
                             Clock::TimePoint said) {
  const ps::Bucket* const at = bucket(message.bucket);
  const bool tells = std::holds_alternative<ps::Beacon>(message.kind) ||
                     std::holds_alternative<ps::Prepare>(message.kind);
  if (tells && at != nullptr && at->replica().role() == ps::Replica::Role::kSecondary &&
      at->replica().configuration().primary == from &&
      at->replica().configuration().version == message.configuration_version) {
    world_.loss_window.Hears(server_, message.bucket, said, world_.scheduler.Now());
  }
}

void ServerProcess::OnOpened(const ps::ServerId& peer) {
  if (open_) {
    core_->OnPeerConnected(peer);
    Settle();
  }
}

void ServerProcess::SendToPeer(const ps::ServerId& to, ps::PeerMessage message) {
  if (const auto* part = std::get_if<ps::CopyPart>(&message.kind)) {
    if (const auto* shard = std::get_if<ps::CopiedShard>(&part->content)) {
      world_.checker.Leaves(server_, shard->shard, *shard->stored);
    }
  }
  cluster_.SendToPeer(*this, to, std::move(message));
}

// --- Time

void ServerProcess::Tick() {
  core_->Tick();
  Settle();
  const Clock::Duration pace = ps::ReplicationTimes{}.beacon / 10;
  world_.scheduler.At(clock_.ToWorld(clock_.Now() + pace), life, [this] { Tick(); });
}

void ServerProcess::WantApply() {
  if (!std::exchange(apply_planned_, true)) {
    const auto wait = world_.scheduler.Random(microseconds(5), microseconds(500));
    world_.scheduler.After(wait, life, [this] {
      apply_planned_ = false;
      core_->ApplyCommitted();
      Settle();
    });
  }
}

// --- Writers

void ServerProcess::OnPush(Place writer, const Push& push) {
  if (!open_ || push.attempt != attempt_) {
    return;
  }
  if (const absl::Status admitted = core_->Admit(push.writer); !admitted.ok()) {
    return;  // a newer process is there
  }
  using Values = std::vector<std::array<float, kElements>>;
  const auto values = std::make_shared<Values>();
  values->reserve(push.updates.size());
  ps::Push submitted{.writer = push.writer, .owner = values};
  const bool here = world_.setup.optimiser.location == OptimiserLocation::kServer;
  for (const Push::Update& update : push.updates) {
    const UpdateKey key{push.writer.slot, push.writer.incarnation, update.sequence};
    submitted.updates.push_back(
        {.shard = update.shard,
         .sequence = update.sequence,
         .kind = here ? ps::UpdateKind::kGradient : ps::UpdateKind::kWeightChange,
         .values = values->emplace_back(ValuesOf(key))});
  }
  sabotage_.Relabel(submitted);
  core_->Submit(submitted, [this, writer, push](const std::vector<ps::ShardAck>& acks) {
    OnPushed(writer, push, acks);
  });
  Settle();
}

void ServerProcess::OnPushed(Place writer,
                             const Push& push,
                             const std::vector<ps::ShardAck>& acks) {
  PushAnswer answer{.id = push.id, .bucket = push.bucket, .acks = {}};
  for (std::size_t i = 0; i < acks.size(); ++i) {
    const auto& [shard, sequence] = push.updates[i];
    const UpdateKey key{push.writer.slot, push.writer.incarnation, sequence};
    if (acks[i].outcome == ps::PushOutcome::kApplied ||
        acks[i].outcome == ps::PushOutcome::kDuplicate) {
      if (Keeps(push.bucket)) {
        world_.checker.Acknowledged(shard, key);
      }
      tap_->TraceAnswer(key);
    }
    answer.acks.push_back({.shard = shard,
                           .sequence = sequence,
                           .outcome = acks[i].outcome,
                           .expected = acks[i].expected});
  }
  cluster_.AnswerWriter(*this, writer, std::move(answer));
}

void ServerProcess::OnFetch(const Fetch& fetch) {
  if (!open_ || !world_.setup.good_clocks || !has_volume()) {
    return;
  }
  const auto values = core_->Fetch(&fetch.writer, world_.setup.shards_of[fetch.bucket], 0);
  for (const ps::ShardValue& value : *values) {
    if (value.outcome == ps::FetchOutcome::kFound) {
      world_.checker.Fetched(server_, value);
    }
  }
}

// --- Clerks

void ServerProcess::OnPlacement(const RecordRequest& request) {
  if (!open_ || request.attempt != attempt_) {
    return;
  }
  if (!request.put) {
    const ps::RecordAnswer answer = core_->records().Get(request.key);
    if (answer.access == ps::Access::kReady && world_.setup.good_clocks && has_volume()) {
      world_.checker.records().Read(request.key, answer.record);
    }
    return cluster_.AnswerClerk(*this, request.from, {.id = request.id, .answer = answer});
  }
  const absl::Status taken = core_->records().Put(
      request.key,
      request.expected,
      request.value,
      [this, request](const ps::RecordAnswer& answer) {
        const BucketId bucket = BucketOfRecord(request.key, world_.setup.buckets);
        if (answer.access == ps::Access::kReady && answer.stored && Keeps(bucket)) {
          Stored(request);
        }
        cluster_.AnswerClerk(*this, request.from, {.id = request.id, .answer = answer});
      });
  ADAMANT_CHECK(taken.ok(), "the record is a small one");
  Settle();
}

void ServerProcess::Stored(const RecordRequest& put) {
  const BucketId id = BucketOfRecord(put.key, world_.setup.buckets);
  RecordChecker& records = world_.checker.records();
  if (world_.checker.IsCurrent(id, bucket(id)->content().generation)) {
    records.Stored(put.key, put.expected + 1, put.value);
  } else {
    records.StoredLate(put.key, put.expected + 1, put.value);
  }
}

}  // namespace adamant::replication_simulation
