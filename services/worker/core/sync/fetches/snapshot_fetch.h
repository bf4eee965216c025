#pragma once

#include <cstdint>

#include "services/common/base/ids.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/learner/evaluation_weights.h"
#include "services/worker/core/sync/fetches/fetch_tracker.h"

namespace adamant::worker {

/// The fetch of the snapshot that is to be evaluated: which one that is, and until when.
/// Threads: one at a time, beside the threads that evaluate.
class SnapshotFetch {
 public:
  /// Both must outlive this.
  SnapshotFetch(EvaluationWeights& weights, FetchTracker& fetches)
      : weights_(weights), fetches_(fetches) {}

  /// Batches that name this snapshot, of the end of `epoch`, are queued or will be. Returns whether
  /// anything has changed for those who evaluate: not where it is older than the newest.
  [[nodiscard]] bool Want(DataEpoch epoch, std::uint64_t snapshot);

  /// Training batches of this epoch are dispatched: every evaluation of those before is over.
  /// Returns whether one has ended: what waits for its values does so in vain.
  [[nodiscard]] bool OnEpochBegun(DataEpoch epoch);

  /// Starts the fetch that is due, once nobody reads the values of the last; returns whether it
  /// has.
  [[nodiscard]] bool StartDue();

  /// Returns whether this fetch is the one under way.
  [[nodiscard]] bool Is(FetchId fetch) const { return fetch == fetch_; }

  /// All its values are there.
  void OnComplete();

 private:
  void End();

  EvaluationWeights& weights_;
  FetchTracker& fetches_;
  std::uint64_t newest_ = 0;       // that a batch named
  DataEpoch newest_of_epoch_ = 0;  // at whose end it was taken
  DataEpoch begun_epoch_ = 0;      // that training batches were dispatched of
  std::uint64_t wanted_ = 0;       // not yet asked for; 0: none
  std::uint64_t snapshot_ = 0;     // loaded, or being fetched
  FetchId fetch_ = 0;              // of it; 0: none is under way
};

}  // namespace adamant::worker
