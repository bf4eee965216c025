#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/common/model/model.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/base/queues.h"
#include "services/worker/core/base/worker_options.h"
#include "services/worker/core/intake/batch_buffer.h"
#include "services/worker/core/intake/normalisation.h"
#include "services/worker/core/intake/settling.h"
#include "services/worker/core/intake/work_tracker.h"

namespace adamant::worker {

/// Format of batches as they are received.
struct BatchFormat {
  std::size_t batch_size = 1;     ///< most examples
  std::size_t channels = 0;       ///< of an example
  std::size_t example_bytes = 0;  ///< of one example
  std::int64_t classes = 0;       ///< labels are below
};

/// The batches of a worker, on one path: received into a slot, taken by a training thread, pushed
/// or evaluated, acknowledged to who dispatched them, answered. However pushes travel, their
/// batches are acknowledged here. Threads: as named. "The loop": one at a time, beside all others.
/// What others call is lock-free, but for SetNormalisation.
class Intake {
 public:
  using Message = WorkTracker::Message;

  /// `ready_notifier` is rung when a training thread may find something to take; must outlive this.
  Intake(const WorkerOptions& options, const model::Graph& graph, Notifier& ready_notifier);

  [[nodiscard]] const BatchFormat& format() const { return format_; }

  /// Batches that each data server may have dispatched to this worker at a time.
  [[nodiscard]] std::size_t window() const { return window_; }

  // --- Who receives batches

  /// Sets how bytes become inputs; call before batches are queued. Errors: InvalidArgument when it
  /// does not fit the model or differs from what was set before.
  absl::Status SetNormalisation(const Normalisation& normalisation);

  /// A slot to fill; null while all are in use.
  Batch* TakeSlot() { return batches_.TakeFree(); }

  /// Rung when a slot is free again, or none is to be waited for.
  Notifier& slot_notifier() { return slot_notifier_; }

  /// No slot is to be waited for; a batch that finds none is let go (OnNoSlot).
  [[nodiscard]] bool settling() const { return settling_.active(); }

  /// Queues a filled slot.
  void Put(Batch* batch);

  /// Notes whether all that was dispatched is queued, and no data server has more for now.
  void SetDrained(bool drained);

  // --- Training threads

  /// The oldest batch; null when there is none.
  Batch* Take() { return batches_.Take(); }

  /// Gives a slot back.
  void Recycle(Batch* batch);

  /// If this was so before Take, and that found none, nothing more is coming for now.
  [[nodiscard]] bool drained() const { return drained_.load(std::memory_order_acquire); }

  /// Returns whether the epoch of a training batch is closed: it is not to be trained.
  [[nodiscard]] bool Closed(DataEpoch epoch) const {
    return epoch <= closed_epoch_.load(std::memory_order_acquire);
  }

  /// For those who have taken a batch.
  [[nodiscard]] const Normalisation& normalisation() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return normalisation_;
  }

  // --- The loop: what data servers say

  void OnPlacement(const PlacementView& placement) { work_.OnPlacement(placement); }
  void OnDataServer(ServerSlot server, bool connected);
  void OnAcknowledged(const std::vector<Lease>& leases) { work_.OnAcknowledged(leases); }

  /// Training batches of epochs up to this one are void.
  void OnEpochClosed(DataEpoch epoch);

  /// There was no slot for this batch, while settling. It is handed back when that is over: before,
  /// it would be dispatched again and again.
  void OnNoSlot(const Lease& lease) { settling_.OnNoSlot(lease); }

  // --- The loop: what becomes of batches that were taken

  /// These were trained; their changes travel in the push.
  void OnTrained(Sequence push, std::vector<LeaseResult> results) {
    work_.Trained(push, std::move(results));
  }

  /// The push has ended. If it was refused, its batches were not learned, and are handed back.
  void OnRetired(Sequence push, bool refused, Clock::TimePoint now) {
    work_.Retired(push, refused, now);
  }

  void OnEvaluated(const LeaseResult& result, Clock::TimePoint now) {
    work_.Evaluated(result, now);
  }

  /// These were not trained and will not be.
  void HandBack(const std::vector<Lease>& leases) { work_.HandBack(leases); }

  /// All threads have stopped: hands back what they left.
  void HandBackQueued();

  /// `due`: whether pushes are paused and not all are counted yet.
  void Settle(bool due) { work_.HandBack(settling_.Update(due)); }

  // --- The loop: what follows

  /// The messages to send now, in order.
  std::vector<Message> Poll(Clock::TimePoint now) { return work_.Poll(now); }

  /// Returns when Poll may have more to send without another call; nullopt: not before one.
  [[nodiscard]] std::optional<Clock::TimePoint> NextPoll() const { return work_.NextPoll(); }

  /// Returns whether all training batches that were pushed have been answered.
  [[nodiscard]] bool Counted() const { return work_.Counted(); }

  /// Returns whether nothing waits for a push or an answer, and nothing is to be sent.
  [[nodiscard]] bool Idle() const { return work_.Idle(); }

 private:
  const BatchFormat format_;
  const std::size_t window_;
  Notifier& ready_notifier_;

  Mutex mutex_;
  Normalisation normalisation_ ABSL_GUARDED_BY(mutex_);  // set once, before the first batch

  BatchBuffer batches_;
  Notifier slot_notifier_;
  std::atomic<bool> drained_{false};
  std::atomic<DataEpoch> closed_epoch_{0};

  // Of the loop.
  WorkTracker work_;
  Settling settling_{slot_notifier_};
};

}  // namespace adamant::worker
