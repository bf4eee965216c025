#include "operator/core/buckets/checkpoint_return.h"

#include <algorithm>
#include <vector>

#include "operator/core/buckets/balancer.h"
#include "operator/core/diagnosis/recovery.h"

namespace adamant::controller {

void CheckpointReturn::Begin(bool none_lives) {
  may_go_back_ = none_lives && state_.checkpoint.snapshot != 0;
}

void CheckpointReturn::OnStored(ServerId server, const StoredBuckets& stored) {
  empty_disks_.erase(server.slot);
  const bool is_member = std::ranges::any_of(
      state_.buckets,
      [&](const Configuration& configuration) { return configuration.Has(server); });
  if (!is_member && std::ranges::none_of(stored.buckets, &StoredBucket::complete)) {
    empty_disks_[server.slot] = state_.checkpoint.snapshot;
  }
}

bool CheckpointReturn::HasDisksRunning() const {
  const std::vector<Balancer::Server> servers = servers_.All();
  const auto& buckets = state_.checkpoint.buckets;
  return buckets.empty() ? std::ranges::all_of(servers, &Balancer::Server::running)
                         : std::ranges::all_of(buckets, [&](const CheckpointBucket& bucket) {
                             return servers[bucket.slot].running;
                           });
}

bool CheckpointReturn::MayReadCheckpoint() const {
  return std::ranges::none_of(state_.checkpoint.buckets, [&](const CheckpointBucket& bucket) {
    const auto empty = empty_disks_.find(bucket.slot);
    return empty != empty_disks_.end() && empty->second >= state_.checkpoint.snapshot;
  });
}

void CheckpointReturn::GoBack() {
  may_go_back_ = false;
  at_checkpoint_ = true;
  returned_ = true;
  UndoUpdates(state_);
  const bool made_anew = state_.checkpoint.buckets.empty();
  const std::vector<ServerId> makers =
      made_anew ? Balancer(settings_).Assign(servers_.All()) : std::vector<ServerId>();
  for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
    if (made_anew) {
      configurations_.MakeAnew(bucket, makers[bucket], state_.checkpoint.snapshot);
    } else {
      configurations_.Restore(bucket,
                              servers_.ServerIdOf(state_.checkpoint.buckets[bucket].slot),
                              state_.checkpoint.snapshot);
    }
  }
}

bool CheckpointReturn::MayGoBackLater() const {
  return !state_.checkpoint.buckets.empty() && !at_checkpoint_;
}

std::string CheckpointReturn::WhatHelps(const absl::Status& why) const {
  const std::string checkpoint = CheckpointName(state_);
  std::string text(why.message());
  if (MayGoBackLater()) {
    return text + "; --resume goes back to " + checkpoint +
           ", if it is still on the servers' disks";
  }
  if (!state_.checkpoint.buckets.empty()) {
    text = checkpoint + " cannot be restored either: " + text;
  }
  return text +
         "; what was trained is lost, unless these servers' disks come back with what they " +
         "held: then --resume goes on; else begin the job anew";
}

}  // namespace adamant::controller
