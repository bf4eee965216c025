#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/checkpoint/shard_record.h"
#include "services/common/model/model.h"
#include "services/common/optimiser/optimiser.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// All that is needed to read or write any checkpoint of a job.
struct TrainedModel {
  model::Graph graph;
  std::vector<ParameterOptimiser> optimisers;  ///< by parameter
  ShardLayout layout;

  /// Sizes of a shard as parameter servers store it.
  [[nodiscard]] checkpoint::ShardIdentity IdentityOf(std::uint64_t job_uid,
                                                     const Shard& shard) const;
};

/// `job` has its defaults. Errors: those of BuildGraph and OptimisersOf.
absl::StatusOr<TrainedModel> TrainedModelOf(const v1::TrainingJob& job);

}  // namespace adamant::local
