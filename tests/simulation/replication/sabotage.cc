// The faults on purpose that sit between a replica and what surrounds it.

#include <algorithm>
#include <variant>

#include "tests/simulation/replication/hosted_bucket.h"

namespace adamant::replication_simulation {

// What arrives.
void HostedBucket::Distort(ps::Holder& from, ps::PeerMessage& message) {
  const ps::Configuration& configuration = replica_->configuration();
  auto* const ack = std::get_if<ps::PrepareAck>(&message.kind);
  auto* const answer = std::get_if<ps::BeaconAnswer>(&message.kind);
  if (world_.Has(Mutation::kNoEpochFencing) && message.epoch < configuration.epoch &&
      (ack != nullptr || std::holds_alternative<ps::Prepare>(message.kind))) {
    message.epoch = configuration.epoch;
    if (ack == nullptr) {
      from = configuration.primary;
    }
  }
  if (world_.Has(Mutation::kStaleCopyCounts) && ack != nullptr && ack->copy != 0) {
    earlier_acks_[{from, message.epoch}] = *ack;
  }
  if (world_.Has(Mutation::kLeaseFromReceipt) && answer != nullptr) {
    answer->sent = place_.now();
  }
  if (auto* beacon = std::get_if<ps::Beacon>(&message.kind);
      world_.Has(Mutation::kCommitsUnacknowledged) && beacon != nullptr) {
    beacon->base = std::max(beacon->base, replica_->prepared());
  }
  if (world_.Has(Mutation::kMajorityCommits) && ack != nullptr && configuration.Has(from) &&
      message.epoch == configuration.epoch) {
    for (const ps::Holder& member : std::vector<ps::Holder>(configuration.members)) {
      replica_->OnMessage(member, message, place_.now());
    }
  }
}

// What leaves: answers to it that its receiver has not given.
void HostedBucket::Forge(const ps::Holder& to, const ps::PeerMessage& message) {
  const auto* prepare = std::get_if<ps::Prepare>(&message.kind);
  if (world_.Has(Mutation::kLearnerNotJoint) && prepare != nullptr && proposed_learner_ == to) {
    const ps::PrepareAck ack{.acked = prepare->entry->lsn, .copy = last_copy_};
    world_.scheduler.After(Clock::Duration(0), place_.life, [this, to, ack, epoch = message.epoch] {
      replica_->OnMessage(to, {.bucket = place_.bucket, .epoch = epoch, .kind = ack}, place_.now());
      Settle();
    });
  }
}

// The last that a learner said of an earlier copy arrives late.
void HostedBucket::RepeatStaleAck(const ps::Holder& learner) {
  const auto earlier = earlier_acks_.find({learner, replica_->configuration().epoch});
  if (world_.Has(Mutation::kStaleCopyCounts) && earlier != earlier_acks_.end()) {
    ps::PrepareAck ack = earlier->second;
    ack.copy = last_copy_;
    world_.scheduler.After(
        Clock::Duration(0), place_.life, [this, learner, ack, epoch = earlier->first.second] {
          replica_->OnMessage(
              learner, {.bucket = place_.bucket, .epoch = epoch, .kind = ack}, place_.now());
          Settle();
        });
  }
}

// A replica that had just been copied to, up to the commit point.
void HostedBucket::CutLog(const ps::Configuration& next) {
  const ps::Configuration before = replica_->configuration();
  if (replica_->role() != ps::Replica::Role::kSecondary || next.epoch <= before.epoch ||
      next.primary == place_.holder || !next.Has(place_.holder)) {
    return;
  }
  const ps::CopyBegin begin{.copy = 1,
                            .base = replica_->committed(),
                            .generation = before.generation,
                            .parts = world_.setup.shards};
  replica_ = NewReplica();
  replica_->OnMessage(before.primary,
                      {.bucket = place_.bucket, .epoch = before.epoch, .kind = begin},
                      place_.now());
  replica_->Installed(begin.copy, place_.now());
}

}  // namespace adamant::replication_simulation
