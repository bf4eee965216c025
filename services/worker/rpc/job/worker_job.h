#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "services/common/model/model.h"
#include "services/common/tensor/shard_layout.h"
#include "services/worker/core/base/update_plan.h"
#include "services/worker/core/base/worker_options.h"
#include "services/worker/core/learner/parallel_mode.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::worker {

/// Meaning of a job for a worker.
struct WorkerJob {
  model::Graph graph;
  ShardLayout layout;
  UpdatePlan plan;
  WorkerOptions options;
  ParallelMode mode;
  std::uint64_t retain_bytes = 0;  ///< of acknowledged pushes, until servers have them on disk
};

/// Most bytes of the rows of one layer in one message (kMaxExchangeBytes of the parameter server,
/// with room to spare).
constexpr std::uint64_t kMaxOperandBytes = std::uint64_t{128} << 20;

/// `job` has its defaults; `training_examples`: of an epoch, 0 where that is not known; `ping` is
/// what a cache line takes between two cores (parallel_mode.h).
/// Errors: InvalidArgument, naming the layer.
absl::StatusOr<WorkerJob> ReadJob(const v1::TrainingJob& job,
                                  std::uint64_t training_examples,
                                  std::optional<double> ping);

}  // namespace adamant::worker
