#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "services/common/base/check.h"
#include "services/common/base/ids.h"
#include "services/worker/core/base/accumulator.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/base/queues.h"
#include "services/worker/core/base/update_plan.h"

namespace adamant::worker {

/// Event that a training thread reports to the exchange loop, in order.
struct ThreadEvent {
  enum class Kind {
    kPush,       ///< `accumulator` is full, or flushed
    kDiscard,    ///< `accumulator` is dropped; its batches were not learned
    kApplied,    ///< the fetch `generation` is applied
    kOutdated,   ///< others trained for long while this worker had no batch: it needs the values of
                 ///< now
    kFetch,      ///< the same, or it was told already; the next fetch is due
    kEvaluated,  ///< `result` of one batch
    kHandBack,   ///< the batch of `result` was not worked on
    kFlushed,    ///< answers Commands::flush_wanted = `generation`
    kReset,      ///< answers Commands::reset_wanted = `generation`; the thread waits
    kStopped,    ///< answers Commands::stopping; the last event
  };
  Kind kind = Kind::kPush;
  Accumulator* accumulator = nullptr;
  std::uint64_t generation = 0;
  LeaseResult result{};
};

/// Totals of one thread since it started. Batches whose loss is not finite count as steps alone: no
/// mean is to be lost with them. Threads: written by that thread, read by any.
struct ThreadStatistics {
  enum Wait { kForBatch, kForAccumulator, kForFetch, kForCommand, kWaits };

  std::atomic<std::uint64_t> examples{0};
  std::atomic<std::uint64_t> steps{0};
  std::atomic<std::uint64_t> correct{0};
  std::atomic<double> loss_sum{0};
  std::atomic<DataEpoch> epoch{0};  ///< of the last batch trained
  std::atomic<std::uint64_t> wait_nanoseconds[kWaits]{};
  std::atomic<std::uint64_t> turns{0};  ///< odd while it is at a piece of work: BusyMeter
};

/// Between one training thread and the exchange loop: events one way, emptied accumulators the
/// other. Threads: as named, one each. Wait-free; waiting is the caller's (Notifier).
class ThreadChannel {
 public:
  /// Pushes in flight + 2: docs/design/0007-updates.md.
  static constexpr std::size_t kAccumulators = 4;

  // --- The training thread

  /// Makes the thread's accumulators, near it; all are free. Once, before all else.
  void MakeAccumulators(const UpdatePlan& plan, std::size_t shards, std::size_t most_steps) {
    for (std::size_t i = 0; i < kAccumulators; ++i) {
      accumulators_.push_back(std::make_unique<Accumulator>(plan, shards, most_steps));
      free_.Push(accumulators_.back().get());
    }
  }

  /// An empty accumulator; null when there is none.
  Accumulator* TakeFree() {
    Accumulator* const* const free = free_.Front();
    if (free == nullptr) {
      return nullptr;
    }
    Accumulator* const accumulator = *free;
    free_.Pop();
    return accumulator;
  }

  /// Returns how many events there is room for; Emit adds one of them.
  [[nodiscard]] std::size_t room() const { return events_.Room(); }
  void Emit(const ThreadEvent& event) { ADAMANT_CHECK(events_.Push(event), "room was looked for"); }

  ThreadStatistics& statistics() { return statistics_; }
  [[nodiscard]] const ThreadStatistics& statistics() const { return statistics_; }

  // --- The exchange loop

  /// The oldest event, null when there is none; and its end.
  [[nodiscard]] const ThreadEvent* Front() const { return events_.Front(); }
  void Pop() { events_.Pop(); }

  /// Gives an emptied accumulator back.
  void Recycle(Accumulator* accumulator) {
    ADAMANT_CHECK(free_.Push(accumulator), "a thread's accumulators fit its queue");
  }

  // --- Both, and other threads once all have made theirs

  /// All accumulators of the thread, wherever they are.
  [[nodiscard]] const std::vector<std::unique_ptr<Accumulator>>& accumulators() const {
    return accumulators_;
  }

  /// Events that the loop has not taken.
  [[nodiscard]] std::size_t pending() const { return kEvents - events_.Room(); }

 private:
  static constexpr std::size_t kEvents = 64;

  SpscQueue<ThreadEvent> events_{kEvents};
  SpscQueue<Accumulator*> free_{kAccumulators};
  std::vector<std::unique_ptr<Accumulator>> accumulators_;
  ThreadStatistics statistics_;
};

}  // namespace adamant::worker
