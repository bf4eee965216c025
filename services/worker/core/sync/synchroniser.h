#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/protocol/control.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/intake/intake.h"
#include "services/worker/core/learner/learner.h"
#include "services/worker/core/sync/asynchrony/asynchrony.h"
#include "services/worker/core/sync/asynchrony/staleness.h"
#include "services/worker/core/sync/fetches/fetch_reader.h"
#include "services/worker/core/sync/fetches/fetch_tracker.h"
#include "services/worker/core/sync/fetches/fetcher.h"
#include "services/worker/core/sync/pushes/epoch_flush.h"
#include "services/worker/core/sync/pushes/push_gatherer.h"
#include "services/worker/core/sync/pushes/push_pause.h"
#include "services/worker/core/sync/pushes/push_payload.h"
#include "services/worker/core/sync/pushes/push_store.h"
#include "services/worker/core/sync/pushes/push_tracker.h"
#include "services/worker/core/sync/pushes/refusal_limit.h"
#include "services/worker/core/sync/routing/routes.h"

namespace adamant::worker {

struct SynchroniserOptions {
  std::uint64_t max_message_bytes = 0;  ///< payload, unless one shard has more
  std::uint64_t retain_bytes =
      0;  ///< of acknowledged pushes that are not on disk; 0: none are kept
};

/// Totals since the start.
struct SynchroniserStatistics {
  std::uint64_t pushes_acknowledged = 0;
  std::uint64_t pushes_refused = 0;
  std::uint64_t updates_lost = 0;
  std::uint64_t updates_resent = 0;  ///< acknowledged, rolled back, and applied again
  std::uint64_t fetches = 0;
  std::uint64_t retained_bytes = 0;      ///< now
  Clock::Duration paused{};              ///< for which pushes were paused for checkpoints
  StalenessHistogram update_staleness;   ///< in updates of a shard
  StalenessHistogram batches_of_others;  ///< staleness: between a fetch and the push of it
  double staleness_batches = 0;          ///< its moving mean now
  Correction correction;                 ///< now
  double gain = 1;                       ///< of the rate, as the swings of the weights allow
  std::uint64_t exchange_every = 0;      ///< batches of a thread between two pushes, now
  double weight_growth = 0;              ///< WeightGrowth::ratio
  std::size_t grown_tensor = 0;
};

/// Keeps a learner's weights and those of the parameter servers together, asynchronously: takes
/// what the training threads hand over, in one order, and decides what is pushed, fetched, applied
/// and recycled (docs/design/0007-updates.md). It tells the intake what became of the batches, and
/// sends what that has to say to data servers in the same order.
///
/// Use: after any call, to the intake too, Advance; send TakeMessages in order; Advance again at
/// NextAdvance, or when Learner::WakeLoop was called.
/// Threads: one at a time, beside the training threads.
class Synchroniser {
 public:
  using Message =
      std::variant<PushMessage, FetchMessage, AcknowledgeMessage, HandBackMessage, FlushMessage>;

  /// `learner` and `intake` must outlive this.
  Synchroniser(Learner& learner, Intake& intake, const SynchroniserOptions& options);

  // --- What happens

  void OnPlacement(const PlacementView& placement);
  void OnParameterServer(ServerSlot server, bool connected);
  absl::Status OnPushReply(const PushReply& reply, Clock::TimePoint now);
  absl::Status OnFlushReply(const FlushReply& reply) { return pushes_.OnReply(reply); }

  /// `read` is called for every shard found, in order.
  absl::Status OnFetchReply(const FetchReply& reply, const ReadValues& read, Clock::TimePoint now);

  /// Batches that name this snapshot, of the end of `epoch`, are queued or will be.
  void WantSnapshot(DataEpoch epoch, std::uint64_t snapshot);

  /// Training batches of this epoch are dispatched: every evaluation of those before is over, and a
  /// batch of one that is still here is handed back.
  void OnEpochBegun(DataEpoch epoch);

  // --- What the controller wants

  /// Everything of epochs up to this one is to be pushed or dropped; TakeFlushed says when it is.
  void Flush(DataEpoch epoch);

  /// No push is to start until Resume (PushPause); TakePaused says when all is at rest. A
  /// flush and a stop end it.
  void Pause(std::uint64_t checkpoint, Clock::TimePoint now) { pause_.Begin(checkpoint, now); }
  void Resume(std::uint64_t checkpoint) { pause_.Resume(checkpoint); }

  /// The threads are to stop, and what they did is to be handed over; Stopped says when it is.
  void Stop();

  // --- What follows

  /// Errors: InvalidArgument when training diverges; else as PushTracker::OnReply. The process
  /// must not go on.
  absl::Status Advance(Clock::TimePoint now);

  /// Returns whether Advance has failed because training diverges.
  [[nodiscard]] bool diverged() const { return refusals_.reached(); }

  std::vector<Message> TakeMessages();
  [[nodiscard]] std::optional<Clock::TimePoint> NextAdvance() const;

  /// The bytes of a message just taken. The payload's owner must be gone before this is: Pinned.
  PushPayload PayloadOf(const PushMessage& message) { return store_.PayloadOf(message); }

  /// Returns whether an owner of a payload is left.
  [[nodiscard]] bool Pinned() const { return store_.Pinned(); }

  /// The epoch of a Flush that is done, once.
  std::optional<DataEpoch> TakeFlushed();

  /// The answer to a Pause, once for each.
  std::optional<protocol::PushesPaused> TakePaused();
  [[nodiscard]] bool Stopped() const;

  [[nodiscard]] SynchroniserStatistics statistics() const;
  [[nodiscard]] std::uint64_t pushes_acknowledged() const {
    return statistics_.pushes_acknowledged;
  }

 private:
  void TakeEvents(Clock::TimePoint now);
  void OnEvent(const ThreadEvent& event, std::size_t thread, Clock::TimePoint now);
  absl::Status StartPushes(Clock::TimePoint now);
  absl::Status StartPush(GatheredPush push);
  absl::Status CountRefusal(const PushedShard* culprit, const Accumulator& sum);
  absl::Status Retire(Clock::TimePoint now);
  void PollServers(Clock::TimePoint now);

  Learner& learner_;
  Intake& intake_;
  Routes routes_;
  PushTracker pushes_;
  FetchTracker fetches_;
  PushStore store_;
  PushPause pause_;
  Asynchrony asynchrony_;
  PushGatherer gatherer_;
  RefusalLimit refusals_;
  EpochFlush flush_;
  Fetcher fetcher_;

  std::vector<Message> outbox_;
  std::deque<RetiredPush> retiring_;  // acknowledged, not yet taken out of the local sums
  std::size_t stop_answers_ = 0;
  bool ring_ = false;
  SynchroniserStatistics statistics_;
};

}  // namespace adamant::worker
