#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/core/state/state.h"

// States of jobs that begin with what another job has left.
namespace adamant::controller {

/// Number of the checkpoint that a job begins with whose weights were given.
inline constexpr std::uint64_t kGivenWeights = 1;

/// Returns the state in which a new job goes on from the newest checkpoint of the job `of`: once
/// its parameter servers have that on their disks, it begins as a job that goes back to it. What
/// the other job had beside it is forgotten: older models, restarts, the time that it took.
/// Error: FailedPrecondition when `of` has no checkpoint to go on from.
absl::StatusOr<JobState> StateFrom(JobState of, std::uint64_t job_uid);

/// Returns the state in which a new job begins to train weights that its parameter servers have on
/// their disks as checkpoint kGivenWeights, `buckets`.
JobState StateWithWeights(const JobSettings& settings,
                          std::uint64_t job_uid,
                          std::vector<CheckpointBucket> buckets);

}  // namespace adamant::controller
