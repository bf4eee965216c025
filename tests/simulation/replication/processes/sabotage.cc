#include "tests/simulation/replication/processes/sabotage.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "services/parameter_server/core/shards/shard_content.h"
#include "tests/simulation/replication/processes/server_process.h"
#include "tests/simulation/replication/world/inside.h"
#include "tests/simulation/replication/world/updates.h"

namespace adamant::replication_simulation {

void Sabotage::Distort(ps::ParameterServerOptions& options) const {
  if (world_.Has(Mutation::kMinInSyncIgnored)) {
    options.min_in_sync = 1;
  }
  if (world_.Has(Mutation::kBadClock)) {
    options.times.grace = milliseconds(1500);
  }
}

// --- What it is told

void Sabotage::Distort(const controller::Membership& membership, std::vector<ps::ServerId>& dead) {
  const std::vector<ps::ServerId> proved = dead;
  for (const controller::Configuration& record : membership.buckets) {
    for (const controller::ServerId& server : record.replicas) {
      const bool running = std::ranges::any_of(membership.members, [&](const auto& member) {
        return member.id.slot == server.slot && member.incarnation == server.incarnation;
      });
      const bool same_slot_died = std::ranges::any_of(
          ever_dead_, [&](const ps::ServerId& each) { return each.slot == server.slot; });
      if ((world_.Has(Mutation::kReleaseOnSuspicion) && !running) ||
          (world_.Has(Mutation::kProofBySlot) && same_slot_died)) {
        dead.push_back({server.slot, server.incarnation});
      }
    }
  }
  ever_dead_.insert(ever_dead_.end(), proved.begin(), proved.end());
}

void Sabotage::Distort(BucketId id, ps::Configuration& configuration) {
  ps::Replica& replica = BucketAt(server_.core(), id).replica();
  const ps::ServerId& self = server_.server();
  const bool newer = configuration.version > replica.configuration().version;
  if (world_.Has(Mutation::kFollowerCutsLog) && newer && configuration.Has(self) &&
      replica.role() == ps::Replica::Role::kSecondary && configuration.primary != self) {
    CutLog(replica);
  }
  if (world_.Has(Mutation::kReleasedWhileServing) && configuration.successor.has_value()) {
    const ps::ServerId successor = *std::exchange(configuration.successor, std::nullopt);
    if (replica.role() == ps::Replica::Role::kServing && successor != self &&
        configuration.version == replica.configuration().version) {
      server_.SendToPeer(
          successor,
          {.bucket = id, .configuration_version = configuration.version, .kind = ps::Released{}});
    }
  }
}

void Sabotage::Distort(ps::ServerId& from, ps::PeerMessage& message) {
  const ps::Replica& replica = BucketAt(server_.core(), message.bucket).replica();
  const ps::Configuration& configuration = replica.configuration();
  auto* const ack = std::get_if<ps::PrepareAck>(&message.kind);
  auto* const answer = std::get_if<ps::BeaconAnswer>(&message.kind);
  if (world_.Has(Mutation::kNoEpochFencing) &&
      message.configuration_version < configuration.version &&
      (ack != nullptr || std::holds_alternative<ps::Prepare>(message.kind))) {
    message.configuration_version = configuration.version;
    if (ack == nullptr) {
      from = configuration.primary;
    }
  }
  if (world_.Has(Mutation::kStaleCopyCounts) && ack != nullptr && ack->copy != 0) {
    earlier_acks_[{message.bucket, from, message.configuration_version}] = *ack;
  }
  if (world_.Has(Mutation::kLeaseFromReceipt) && answer != nullptr) {
    answer->sent = server_.clock().Now();
  }
  if (auto* beacon = std::get_if<ps::Beacon>(&message.kind);
      world_.Has(Mutation::kCommitsUnacknowledged) && beacon != nullptr) {
    beacon->base = std::max(beacon->base, replica.log().prepared());
  }
  if (world_.Has(Mutation::kMajorityCommits) && ack != nullptr && configuration.Has(from) &&
      message.configuration_version == configuration.version) {
    ps::PeerMessage forged = message;
    std::get<ps::PrepareAck>(forged.kind).flushed = 0;
    for (const ps::ServerId& each : std::vector<ps::ServerId>(configuration.replicas)) {
      server_.Receive(each, forged);
    }
  }
}

// Whatever comes is the next one.
void Sabotage::Relabel(ps::Push& push) {
  if (!world_.Has(Mutation::kNoDeduplication)) {
    return;
  }
  const auto now = static_cast<std::uint64_t>(world_.scheduler.Now().time_since_epoch().count());
  for (ps::ShardUpdate& update : push.updates) {
    update.sequence = now + ++relabelled_;
    update.after_loss = true;
  }
}

// --- What it says

void Sabotage::ReceiveSoon(const ps::ServerId& from, const ps::PeerMessage& message) {
  world_.scheduler.After(
      Clock::Duration(0), server_.life, [this, from, message] { server_.Receive(from, message); });
}

void Sabotage::Forge(const ps::ServerId& to, const ps::PeerMessage& message) {
  const auto* prepare = std::get_if<ps::Prepare>(&message.kind);
  const auto learner = proposed_learner_.find(message.bucket);
  if (world_.Has(Mutation::kLearnerNotJoint) && prepare != nullptr &&
      learner != proposed_learner_.end() && learner->second == to) {
    const ps::PrepareAck ack{.acked = prepare->entry->lsn, .copy = last_copy_[message.bucket]};
    ReceiveSoon(to,
                {.bucket = message.bucket,
                 .configuration_version = message.configuration_version,
                 .kind = ack});
  }
}

void Sabotage::Proposed(const ps::Proposal& proposal) {
  proposed_learner_.erase(proposal.bucket);
  if (proposal.kind == ps::Proposal::Kind::kAdd) {
    proposed_learner_[proposal.bucket] = proposal.subject;
  }
}

void Sabotage::CopyBegins(BucketId id, const ps::ServerId& learner, std::uint64_t copy) {
  last_copy_[id] = copy;
  const ConfigurationVersion configuration_version =
      BucketAt(server_.core(), id).replica().configuration().version;
  // The last that it said of an earlier copy arrives late.
  if (const auto earlier = earlier_acks_.find({id, learner, configuration_version});
      world_.Has(Mutation::kStaleCopyCounts) && earlier != earlier_acks_.end()) {
    ps::PrepareAck ack = earlier->second;
    ack.copy = copy;
    ReceiveSoon(learner,
                {.bucket = id, .configuration_version = configuration_version, .kind = ack});
  }
  if (world_.Has(Mutation::kEarlyAdd)) {
    const std::size_t parts =
        world_.setup.shards_of[id].size() + BucketAt(server_.core(), id).content().records.size();
    for (std::uint32_t part = 0; part < parts; ++part) {
      ReceiveSoon(learner,
                  {.bucket = id,
                   .configuration_version = configuration_version,
                   .kind = ps::CopyAck{.copy = copy, .index = part}});
    }
  }
}

// --- What it writes

void Sabotage::Distort(std::vector<storage::Change>& changes) {
  if (world_.Has(Mutation::kPersistsUncommitted)) {
    std::ranges::for_each(changes, [this](storage::Change& change) { AddUncommitted(change); });
  }
  if (!world_.Has(Mutation::kAckBeforePersisted)) {
    return;
  }
  // Entries are written with what is written next.
  std::vector<storage::Change> now = std::exchange(late_, {});
  for (storage::Change& change : changes) {
    const bool entry = !change.erase && change.key.starts_with("log/");
    (entry ? late_ : now).push_back(std::move(change));
  }
  changes = std::move(now);
}

void Sabotage::AddUncommitted(storage::Change& change) const {
  for (ShardId shard = 0; shard < world_.setup.shards(); ++shard) {
    if (change.erase || change.key != ps::LiveShardKey(shard)) {
      continue;
    }
    const ps::ShardIdentity identity = world_.setup.IdentityOf(shard);
    const auto content = ps::DecodeContent(identity, change.value);
    ReferenceShard more(world_.setup.optimiser, *content);
    const BucketId id = server_.core().layout().shards()[shard].bucket;
    for (const ps::EntryPtr& entry : BucketAt(server_.core(), id).replica().log().entries()) {
      for (const ps::LoggedUpdate& update : entry->updates) {
        if (update.shard == shard) {
          more.Apply(KeyOf(update.values), update.sequence);
        }
      }
    }
    change.value = ps::EncodeShard(identity, more.content());
    ps::SealShard(change.value);
  }
}

}  // namespace adamant::replication_simulation
