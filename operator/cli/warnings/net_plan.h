#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "services/common/graph/profile.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::cli {

struct NetPlanOptions {
  int batch = 0;                  ///< examples of a batch; 0: the job's
  graph::ProfileOptions profile;  ///< of the steps that are timed
};

/// Tells how this machine trains the job's net: a table of its layers with kernel, layout, memory
/// and speed, what a step takes, and the layers that waste the core. Measures steps on random data
/// on this thread. Errors: InvalidArgument for a job that no worker could run, ResourceExhausted
/// when the memory is not there.
absl::StatusOr<std::string> NetPlan(v1::TrainingJob job, const NetPlanOptions& options);

/// The same in about a second: a few steps, and of a large net fewer examples.
absl::StatusOr<std::string> QuickNetPlan(const v1::TrainingJob& job);

}  // namespace adamant::cli
