#pragma once

#include "operator/kube/schema/job_object.h"
#include "operator/kube_client/api/resource.h"

namespace adamant::kube {

inline constexpr Resource kTrainingJobs{kGroup, kVersion, "trainingjobs", "TrainingJob"};
/// Name of the operator in what it applies and reports.
inline constexpr char kFieldManager[] = "adamant-operator";

/// Annotation of a TrainingJob: its user wants a checkpoint, and calls this request by the value.
inline constexpr char kCheckpointAnnotation[] = "adamant.dev/checkpoint-requested";

inline constexpr Resource kShardMaps{kGroup, kVersion, "shardmaps", "ShardMap"};

}  // namespace adamant::kube
