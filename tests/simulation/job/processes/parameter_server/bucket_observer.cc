#include "tests/simulation/job/processes/parameter_server/bucket_observer.h"

#include <algorithm>

namespace adamant::simulation {
namespace {

using Role = parameter_server::Replica::Role;

/// Who has taken over, or has proposed to, learns of no commits from others.
bool Follows(Role role) {
  return role == Role::kNone || role == Role::kLearner || role == Role::kSecondary;
}

}  // namespace

void BucketObserver::SetConfigurations(std::span<const parameter_server::Configuration> buckets) {
  for (BucketId bucket = 0; bucket < buckets.size(); ++bucket) {
    versions_[bucket] = buckets[bucket].version;
  }
}

void BucketObserver::OnPeerMessage(const parameter_server::PeerMessage& message) {
  const BucketId bucket = message.bucket;
  const ConfigurationVersion version = message.configuration_version;
  const bool tells_what_is_committed =
      version >= versions_[bucket] && version <= world_.served[bucket];
  if (tells_what_is_committed && Follows(core_->Roles()[bucket])) {
    window_.Hear(bucket, world_.scheduler.Now());
  }
}

void BucketObserver::HearServed() {
  const std::vector<Role> roles = core_->Roles();
  for (const parameter_server::BucketReport& report : core_->Reports()) {
    if (roles[report.bucket] == Role::kServing) {
      window_.Hear(report.bucket, world_.scheduler.Now());
      ConfigurationVersion& served = world_.served[report.bucket];
      served = std::max(served, report.configuration_version);
    }
  }
}

void BucketObserver::Observe() {
  for (const parameter_server::BucketReport& report : core_->Reports()) {
    const auto observed = observed_.find(report.bucket);
    if (report.lost || (observed != observed_.end() && observed->second == report.generation)) {
      continue;
    }
    const std::vector<ShardId> shards = ShardsOf(report.bucket);
    const auto found = core_->Fetch(nullptr, shards, 0);
    if (!found.ok() ||
        std::ranges::any_of(*found, [](const auto& each) { return each.values.empty(); })) {
      continue;  // its lease has passed, so that nobody else can read it either: later
    }
    observed_[report.bucket] = report.generation;
    if (!world_.updates.Restored(report.bucket, report.generation)) {
      continue;
    }
    world_.scheduler.Record(owner_.life->name, "serves what was stored of bucket", report.bucket);
    if (world_.Has(Mutation::kOldPushGetsIn)) {
      PushAgain();
    }
    for (std::size_t i = 0; i < shards.size(); ++i) {
      world_.updates.Loaded(owner_.start().id.slot, shards[i], found->at(i).values);
    }
  }
}

std::vector<ShardId> BucketObserver::ShardsOf(BucketId bucket) const {
  std::vector<ShardId> shards;
  for (const Shard& shard : core_->layout().shards()) {
    if (shard.bucket == bucket) {
      shards.push_back(shard.id);
    }
  }
  return shards;
}

// What came before the job went back: of that, all behind what it went back to would be next.
void BucketObserver::PushAgain() {
  owner_.After(milliseconds(1), [this] {
    for (const Before::OldPush& old : world_.before.pushes[owner_.start().id.slot]) {
      if (old.attempt < owner_.attempt()) {
        core_->Submit(old.push, [this, old](const std::vector<parameter_server::ShardAck>& acks) {
          world_.updates.Acknowledged(old.push.writer, *old.frame, acks);
        });
      }
    }
  });
}

void BucketObserver::OnEnded() {
  const Clock::TimePoint now = world_.scheduler.Now();
  const std::vector<Role> roles = core_->Roles();
  for (BucketId bucket = 0; bucket < roles.size(); ++bucket) {
    if (roles[bucket] >= Role::kSecondary && roles[bucket] != Role::kLoading && IsKnown(bucket)) {
      world_.updates.Ended(owner_.start().id.slot,
                           bucket,
                           window_.At(bucket, Death::kKilled, now),
                           window_.At(bucket, Death::kPowerLost, now));
    }
  }
}

// It may die in the very step in which it begins to serve what its disk had: nobody has seen that,
// and what it may lack is what it lacked before.
bool BucketObserver::IsKnown(BucketId bucket) const {
  return core_->Roles()[bucket] < Role::kLoading || observed_.contains(bucket) ||
         window_.HasHeard(bucket);
}

void BucketObserver::OrphanBuckets() {
  const std::vector<Role> roles = core_->Roles();
  for (BucketId bucket = 0; bucket < roles.size(); ++bucket) {
    if (roles[bucket] > Role::kLoading) {
      world_.updates.Orphaned(bucket);
    }
  }
}

}  // namespace adamant::simulation
