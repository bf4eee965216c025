#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "services/common/base/clock.h"
#include "services/worker/core/base/float_buffer.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/base/update_plan.h"

namespace adamant::worker {

/// Work that accrued in one thread since its last push: the sum of its changes (or gradients), and
/// the batches they came from.
/// Threads: one owner at a time: the training thread while it accrues, the exchange loop once it is
///   handed over. The thread that applies a fetch reads `values` and the atomics meanwhile.
struct Accumulator {
  /// The rows of a layer with Activations.
  struct Rows {
    FloatBuffer activations;  ///< [max_rows, inputs]
    FloatBuffer errors;       ///< [max_rows, outputs]
  };

  /// `most_steps`: of one push.
  Accumulator(const UpdatePlan& plan, std::size_t shards, std::size_t most_steps);

  /// Bytes of `values` and `rows`.
  static std::uint64_t BytesOf(const UpdatePlan& plan);

  /// Empties it for its next use.
  void Clear();

  /// Exchanges what a push sends and what a fetched value may lack of it. Spans stay valid and
  /// follow their content.
  void SwapContent(Accumulator& other);

  FloatBuffer values;                ///< flat parameters; not valid before a step reaches them
  std::vector<Rows> rows;            ///< by tensor; empty without Activations
  std::uint64_t filled_rows = 0;     ///< of every layer with Activations
  std::vector<LeaseResult> results;  ///< room for most_steps
  std::uint64_t steps = 0;
  Clock::Duration stood_still{0};  ///< of the step that took longest by far, if one did
  std::uint64_t push_every;        ///< steps after which it is full; set before its first

  // What a fetch needs to know.
  std::atomic<bool> live{false};           ///< counts in local weights: not empty, not retired
  std::atomic<std::uint64_t> ordinal{0};   ///< rises in the order in which they are taken
  std::atomic<std::uint64_t> progress{0};  ///< largest of the batches'
  Correction correction{};                 ///< of the optimiser; set before its first step
  std::vector<std::uint8_t> included;  ///< by shard: 1 if the fetched value has it. By the loop.
};

/// values[all] += other.values, for trained tensors.
void Sum(const UpdatePlan& plan, const Accumulator& other, Accumulator& into);

/// The first shard of the plan with a value (or row, or product of rows) that is not finite for
/// certain; nullptr if there is none.
const PushedShard* FindNotFinite(const UpdatePlan& plan,
                                 const ShardLayout& layout,
                                 std::span<Accumulator* const> parts);

}  // namespace adamant::worker
