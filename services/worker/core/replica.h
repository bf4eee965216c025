#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/mutex.h"
#include "services/common/graph/context.h"
#include "services/common/model/model.h"
#include "services/common/tensor/shard_layout.h"
#include "services/worker/core/accumulator.h"
#include "services/worker/core/asynchrony.h"
#include "services/worker/core/batch_queue.h"
#include "services/worker/core/dead_units.h"
#include "services/worker/core/evaluation_weights.h"
#include "services/worker/core/fetch_slot.h"
#include "services/worker/core/look_ahead.h"
#include "services/worker/core/queues.h"
#include "services/worker/core/update_plan.h"

namespace adamant::worker {

struct ReplicaOptions {
  std::size_t threads = 1;
  std::uint64_t fetch_every = 1;  ///< batches of a thread between two fetches; 0: never
  std::uint64_t push_every = 1;   ///< batches of a thread between two pushes
  /// Whether these two are what a worker alone does, and the most; else they are kept as written.
  bool choose_fetch = false;
  bool choose_push = false;
  /// What a worker does beside about one other, where it chooses: at most what one alone does.
  std::uint64_t exchange_beside_one = 1;
  bool correct = false;           ///< for asynchrony (Asynchrony)
  std::uint64_t share_every = 1;  ///< batches of a thread that change the weights together
  bool pin_threads = false;       ///< each on a CPU of its own
  std::size_t batch_size = 1;
  std::size_t prefetch = 1;  ///< batches of a thread received ahead of need
  std::uint64_t seed = 0;    ///< of dropout
  graph::Backend backend = graph::Backend::kOneDnn;
};

/// How bytes become inputs: (byte - mean[channel]) / deviation[channel].
struct Normalisation {
  std::vector<float> mean;
  std::vector<float> deviation;

  friend bool operator==(const Normalisation&, const Normalisation&) = default;
};

/// What a training thread tells the exchange loop, in order.
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
  std::atomic<std::uint64_t> epoch{0};  ///< of the last batch trained
  std::atomic<std::uint64_t> wait_nanoseconds[kWaits]{};
  std::atomic<std::uint64_t> turns{0};  ///< odd while it is at a piece of work: BusyMeter
};

/// What one training thread and the exchange loop share.
struct ThreadPort {
  static constexpr std::size_t kEvents = 64;
  static constexpr std::size_t kAccumulators =
      4;  ///< pushes in flight + 2: docs/design/0007-updates.md

  SpscQueue<ThreadEvent> events{kEvents};
  SpscQueue<Accumulator*> free{kAccumulators};
  std::vector<std::unique_ptr<Accumulator>> pool;  ///< made by the thread, near it
  ThreadStatistics statistics;
};

/// What the exchange loop asks of the training threads, and of those who receive batches; it rings
/// the bell after a change.
struct Commands {
  std::atomic<std::uint64_t> reset_wanted{1};  ///< drop what accrues and wait; first at the start
  std::atomic<std::uint64_t> renewed{0};       ///< resets after which training may go on
  std::atomic<std::uint64_t> flush_wanted{0};
  std::atomic<std::uint64_t> closed_epoch{0};  ///< training batches of epochs up to this are void
  std::atomic<bool> drained{false};            ///< no data server has more to deal for now
  std::atomic<bool> stopping{false};

  /// Pushes are held and not all are counted yet: who receives batches waits for no slot, for the
  /// answers stand behind them. Rings slot_bell.
  std::atomic<bool> settling{false};
};

/// Asynchrony's Guidance, from the exchange loop to the training threads: each number by itself.
class SharedGuidance {
 public:
  explicit SharedGuidance(std::uint64_t exchange_every) : exchange_every_(exchange_every) {}

  void Set(const Guidance& guidance) {
    rate_.store(guidance.correction.rate, std::memory_order_relaxed);
    memory_.store(guidance.correction.memory, std::memory_order_relaxed);
    look_ahead_.store(guidance.look_ahead, std::memory_order_relaxed);
    exchange_every_.store(guidance.exchange_every, std::memory_order_relaxed);
    eager_.store(guidance.eager, std::memory_order_release);
  }
  [[nodiscard]] Guidance Get() const {
    return {.correction = {.rate = rate_.load(std::memory_order_relaxed),
                           .memory = memory_.load(std::memory_order_relaxed)},
            .look_ahead = look_ahead_.load(std::memory_order_relaxed),
            .exchange_every = exchange_every_.load(std::memory_order_relaxed),
            .eager = eager_.load(std::memory_order_acquire)};
  }

 private:
  std::atomic<float> rate_{1};
  std::atomic<float> memory_{1};
  std::atomic<float> look_ahead_{0};
  std::atomic<std::uint64_t> exchange_every_;
  std::atomic<bool> eager_{false};
};

/// One worker's copy of the model, and everything that its threads share.
/// Threads: members say; those without a word are constant while threads run.
struct Replica {
  /// `graph`, `layout` and `plan` must outlive this. `wake_loop` is called, from training threads,
  /// when the exchange loop has something to do; it must not block.
  Replica(const ReplicaOptions& options,
          const model::Graph& graph,
          const ShardLayout& layout,
          const UpdatePlan& plan,
          std::function<void()> wake_loop);

  /// Bytes of one example as received.
  [[nodiscard]] std::size_t example_bytes() const { return example_bytes_; }

  /// Batches that each data server may have dealt to this worker at a time.
  [[nodiscard]] std::size_t window() const {
    return options.threads * (2 * options.push_every + options.prefetch);
  }

  /// Batches of a thread between two pushes, and between two fetches, from now on.
  [[nodiscard]] std::uint64_t PushEvery() const;
  [[nodiscard]] std::uint64_t FetchEvery() const;

  /// How bytes become inputs; call before batches are queued. Any thread. Errors: InvalidArgument
  /// when it does not fit the model or differs from what was set before.
  absl::Status SetNormalisation(const Normalisation& normalisation);

  /// For those who have taken a batch.
  [[nodiscard]] const Normalisation& normalisation() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return normalisation_;
  }

  const ReplicaOptions options;
  const model::Graph& graph;
  const ShardLayout& layout;
  const UpdatePlan& plan;
  const std::function<void()> wake_loop;

 private:
  const std::size_t example_bytes_;
  Mutex mutex_;
  Normalisation normalisation_ ABSL_GUARDED_BY(mutex_);  // set once, before the first batch

 public:
  FloatBuffer weights;  ///< flat; shared without locks
  FetchSlot fetch;
  FloatBuffer ahead;     ///< of LookAhead; empty where nothing is corrected
  LookAhead look_ahead;  ///< of whoever applies a fetch
  SharedGuidance guidance;
  EvaluationWeights evaluation;
  BatchQueue batches;
  std::vector<std::unique_ptr<ThreadPort>> ports;  ///< by thread
  DeadUnitBoard dead_units;                        ///< as the threads sample them

  Bell bell;       ///< rung when a training thread that waits may have something to do
  Bell slot_bell;  ///< rung when a slot of `batches` is free again, or none is waited for
  Commands commands;
  std::atomic<std::uint64_t> steps{0};     ///< of all threads
  std::atomic<std::uint64_t> fetch_at{0};  ///< steps at which the next fetch point is met; 0: never
  std::atomic<std::uint64_t> fetch_points{0};  ///< met
  std::atomic<std::uint64_t> fetched{0};       ///< id of the fetch that came last
  std::atomic<std::uint64_t> job_examples{0};  ///< of the newest batch that was trained on
  std::atomic<std::uint32_t> workers{1};       ///< of the job that run
  std::atomic<std::uint64_t> fetch_turn{0};    ///< fetch points dealt with
  std::atomic<std::uint64_t> ordinals{0};      ///< accumulators taken
};

}  // namespace adamant::worker
