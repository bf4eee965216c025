#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// Tells people of buckets that came back from disk: at once of one that lost updates, and of all
/// together.
/// Threads: one thread at a time.
class RestoredBuckets {
 public:
  /// The arguments must outlive this.
  RestoredBuckets(const JobSettings& settings, const JobState& state, Outbox& outbox)
      : settings_(settings), state_(state), outbox_(outbox) {}

  /// A controller begins. `ended_in_order`: all servers had flushed before they ended.
  void Begin(bool ended_in_order) { ended_in_order_ = ended_in_order; }

  /// From now on servers end in any way.
  void OnJobBegun() { ended_in_order_ = false; }

  /// The bucket came back on this server. `lost`: updates that are rolled back by it, as far as is
  /// known.
  void Add(BucketId bucket, SlotId server, std::uint64_t lost);

  /// All that were lost are back: tells of them, and of the losses that are known (a controller
  /// that died has forgotten the last counts), and forgets all. `at_checkpoint`: they were rolled
  /// back to it.
  void TellTogether(bool at_checkpoint);

  void Forget();

 private:
  [[nodiscard]] bool HoldsParameters(std::size_t bucket) const;
  [[nodiscard]] std::string WhatIsMissing(std::size_t less, std::uint64_t updates) const;

  const JobSettings& settings_;
  const JobState& state_;
  Outbox& outbox_;
  bool ended_in_order_ = false;
  // Not told of together yet.
  std::set<std::uint32_t> buckets_;  // some come back again before all are back
  std::set<std::uint32_t> less_;     // those of them that lost updates
  std::uint64_t updates_ = 0;        // that these lost
};

}  // namespace adamant::controller
