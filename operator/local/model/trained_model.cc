#include "operator/local/model/trained_model.h"

#include <utility>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/job/job.h"
#include "services/common/job/optimiser_of.h"

namespace adamant::local {

checkpoint::ShardIdentity TrainedModel::IdentityOf(std::uint64_t job_uid,
                                                   const Shard& shard) const {
  const ParameterOptimiser& optimiser = optimisers[shard.tensor];
  const bool has_state = optimiser.location == OptimiserLocation::kServer;
  return {.job_uid = job_uid,
          .shard = shard.id,
          .values = shard.size(),
          .state = has_state ? shard.size() * StatePerWeight(optimiser.kind) : 0};
}

absl::StatusOr<TrainedModel> TrainedModelOf(const v1::TrainingJob& job) {
  ADAMANT_ASSIGN_OR_RETURN(model::Graph graph, model::BuildGraph(job::NetOf(job)));
  v1::TrainingJob counted = job;
  job::CountProgressInExamples(1, 0, counted);  // the kinds of the optimisers do not depend on it
  ADAMANT_ASSIGN_OR_RETURN(auto optimisers, job::OptimisersOf(counted, graph.parameters));
  const auto buckets =
      static_cast<std::uint32_t>(job.spec().distribution().parameter_servers().buckets());
  ShardLayout layout(graph.parameters, buckets);
  return TrainedModel{
      .graph = std::move(graph), .optimisers = std::move(optimisers), .layout = std::move(layout)};
}

}  // namespace adamant::local
