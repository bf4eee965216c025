#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/model/model.h"
#include "services/common/tensor/shard_layout.h"
#include "services/worker/core/base/accumulator.h"
#include "services/worker/core/base/update_plan.h"
#include "services/worker/core/learner/parallel_mode.h"
#include "tests/bench/data/examples.h"

namespace adamant::bench {

struct TrainerOptions {
  std::size_t threads = 1;     ///< at most: a worker's rule decides (parallel_mode.h)
  std::optional<double> ping;  ///< nanoseconds of a cache line between two cores, for that rule
  std::size_t batch_size = 32;
  double rate = 0.001;
  std::uint64_t decay_over = 0;  ///< examples over which the rate falls linearly to 0; 0: constant
  double warm_up = 0;            ///< examples over which the rate rises from 0
  double weight_decay = 0;
  std::uint64_t seed = 1;
};

/// What a call of Train did.
struct Work {
  std::uint64_t examples = 0;
  double seconds = 0;            ///< from the first thread's start to the last one's end
  double processor_seconds = 0;  ///< of all threads meanwhile
};

/// The training threads of a worker without its services: each takes the next batch of a data set
/// in memory, runs graph::Context::Train on the weights that all share into a
/// worker::LocalUpdate with momentum (0.9) of its own, from its own place in the parameters on; in
/// the mode that a worker would choose.
/// Threads are pinned. Threads: one caller.
class Trainer {
 public:
  /// Weights as a job with `options.seed` starts them. Errors: as graph::Context::Create.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(model::Graph graph,
                                                         const TrainerOptions& options);

  ~Trainer();

  /// Trains on batches of `order` (indices into `examples`), around again at its end, without the
  /// part of a batch that is left over: until `most_batches` are done or `seconds` are over. The
  /// schedule goes on from call to call.
  Work Train(const Examples& examples,
             std::span<const std::uint32_t> order,
             std::uint64_t most_batches,
             double seconds);

  /// The share of `examples` whose label has the largest logit, on one thread.
  [[nodiscard]] double Top1(const Examples& examples) const;

  [[nodiscard]] const model::Graph& graph() const { return graph_; }
  [[nodiscard]] const worker::ParallelMode& mode() const { return mode_; }

 private:
  struct Member;

  Trainer(model::Graph graph, const TrainerOptions& options);
  absl::Status Prepare();
  void TakeBatch(Member& member,
                 const Examples& examples,
                 std::span<const std::uint32_t> batch,
                 std::uint64_t job_examples);
  [[nodiscard]] Work WorkOf(std::uint64_t examples) const;

  const model::Graph graph_;
  const ShardLayout layout_;
  const TrainerOptions options_;
  worker::ParallelMode mode_;
  worker::UpdatePlan plan_;
  worker::FloatBuffer weights_;
  std::vector<std::unique_ptr<Member>> members_;  // by thread
  std::uint64_t trained_batches_ = 0;
};

}  // namespace adamant::bench
