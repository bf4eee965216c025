#pragma once

#include <cstdint>
#include <vector>

#include "services/common/base/ids.h"
#include "services/worker/core/base/accumulator.h"
#include "services/worker/core/base/float_buffer.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/learner/learner.h"
#include "services/worker/core/sync/fetches/fetch_tracker.h"
#include "services/worker/core/sync/pushes/push_store.h"

namespace adamant::worker {

/// The fetch of the values of now that training goes on from, under way or waiting to be applied.
/// What this worker has pushed and a value lacks is added to the value while it waits, as soon as
/// the training threads will not add it any more.
/// Threads: one at a time, beside the training threads.
class WeightFetch {
 public:
  /// Both must outlive this; the values go into Learner::fetch.
  WeightFetch(Learner& learner, FetchTracker& fetches);

  /// Starts a fetch; none may be under way.
  void Start();

  /// Forgets it, and what was requested of it; only while no thread applies it.
  void Abandon();

  /// Names the fetch; 0: none is under way or waits.
  [[nodiscard]] FetchId id() const { return id_; }

  /// Returns whether all its values are there.
  [[nodiscard]] bool complete() const { return complete_; }

  // --- What the values lack

  /// A value has come, perhaps from a server that was rolled back: adds what it lacks of pushes
  /// that had ended.
  void AddRetained(const FetchedShard& fetched, const PushStore::Contents& retained);

  /// A push has ended, whose accumulator goes: adds it to the values that have come without it.
  void AddRetired(Sequence sequence, const Accumulator& accumulator);

  /// All values are there: says of each push in flight what they include of it.
  void OnComplete(const PushStore::Contents& in_flight);

  // --- Its end

  /// Replaces the weights, as a thread does that applies it; nothing of before is looked ahead. All
  /// threads must wait.
  void Apply(const PushStore::Contents& in_flight);

  /// It has been applied: returns, by shard, the versions that it brought.
  std::vector<std::uint64_t> Finish();

 private:
  void Add(ShardId shard, const Accumulator& accumulator);

  Learner& learner_;
  FetchTracker& fetches_;
  FloatBuffer scratch_;
  FetchId id_ = 0;
  bool complete_ = false;
};

}  // namespace adamant::worker
