#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/worker/core/base/accumulator.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/learner/learner.h"
#include "services/worker/core/sync/asynchrony/asynchrony.h"
#include "services/worker/core/sync/asynchrony/weight_growth.h"
#include "services/worker/core/sync/fetches/fetch_reader.h"
#include "services/worker/core/sync/fetches/fetch_tracker.h"
#include "services/worker/core/sync/fetches/renewal.h"
#include "services/worker/core/sync/fetches/snapshot_fetch.h"
#include "services/worker/core/sync/fetches/weight_fetch.h"
#include "services/worker/core/sync/pushes/push_store.h"
#include "services/worker/core/sync/pushes/push_tracker.h"

namespace adamant::worker {

/// Brings a learner the values of the parameter servers: those of now, which it trains on from
/// fetch to fetch, or begins anew with (Renewal); and those of the snapshot that is evaluated.
/// Threads: one at a time, beside the training threads.
class Fetcher {
 public:
  /// All must outlive this. `fetches` says what to send.
  Fetcher(Learner& learner,
          FetchTracker& fetches,
          PushTracker& pushes,
          const PushStore& store,
          Asynchrony& asynchrony);

  /// Takes over the values; `read` is called for every shard found, in order. Returns whether they
  /// are the last of their fetch: the caller then rings Learner::notifier. Errors: Internal when
  /// the server broke the protocol, and those of `read`.
  absl::StatusOr<bool> OnReply(const FetchReply& reply,
                               const ReadValues& read,
                               Clock::TimePoint now);

  /// The snapshot that is evaluated; fetched by SnapshotFetch::StartDue.
  SnapshotFetch& snapshot() { return snapshot_; }

  // --- The values of now

  /// Starts the fetch that a thread has requested: it has applied the one before. Returns false
  /// where a renewal will bring them.
  bool Start();

  /// A thread has applied this fetch, and requests none.
  void OnApplied(FetchId fetch);

  /// A push has ended, whose accumulator goes.
  void OnRetired(Sequence sequence, const Accumulator& sum) { weights_.AddRetired(sequence, sum); }

  /// Asks the threads to wait for a renewal; the caller rings Learner::notifier. Returns false
  /// where they were asked before.
  bool StartRenewal();

  /// A thread waits, in answer to this Commands::reset_wanted; with the last one the fetch starts.
  void OnReset(std::uint64_t generation);

  /// Ends the renewal if its values are there, and returns whether it has: the caller then rings
  /// Learner::notifier.
  bool FinishRenewal();

  // --- What has come

  /// Counts the fetches whose values have all come, snapshots among them.
  [[nodiscard]] std::uint64_t completed() const { return completed_; }
  [[nodiscard]] const WeightGrowth& weight_growth() const { return weight_growth_; }

 private:
  absl::Status ReadShards(const FetchReply& reply,
                          const FetchProgress& progress,
                          const ReadValues& read);
  void OnWeights(Clock::TimePoint now);
  void Finish();

  Learner& learner_;
  FetchTracker& fetches_;
  PushTracker& pushes_;
  const PushStore& store_;
  Asynchrony& asynchrony_;
  FetchReader reader_;
  WeightFetch weights_;
  Renewal renewal_;
  SnapshotFetch snapshot_;
  WeightGrowth weight_growth_;
  std::uint64_t completed_ = 0;
};

}  // namespace adamant::worker
