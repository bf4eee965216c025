#include "operator/core/job/start_state.h"

#include <string>
#include <utility>

#include "operator/core/diagnosis/recovery.h"
#include "operator/core/job/first_state.h"

namespace adamant::controller {
namespace {

// Of the other job only the checkpoint is there.
void ForgetOtherModels(JobState& state) {
  Recovery& recovery = state.recovery;
  if (state.evaluated_snapshot != state.checkpoint.snapshot) {
    state.evaluated_snapshot = 0;
  }
  recovery.newest.checkpoint = state.checkpoint;
  recovery.newest.evaluated = state.evaluated_snapshot;
  recovery.first = {};
  recovery.older = {};
  recovery.healthy = recovery.newest;
  recovery.found = true;
  recovery.ended_diverged = false;
  recovery.divergence.clear();
  recovery.sign.clear();
  recovery.times = 0;
  recovery.undone_updates = 0;
  recovery.undone_examples = 0;
}

// What happened to the processes and the time of the other job.
void ForgetHistory(JobState& state) {
  state.failovers = 0;
  state.restores = 0;
  state.restarts = 0;
  state.releases = 0;
  state.released = false;
  state.starts = 0;  // one with the first
  state.active = {};
  state.epoch_active = {};
  state.productive = {};
  state.message.clear();
  state.invalid = false;
  state.end = EndKind::kOther;
  for (SlotRecord& slot : state.slots) {
    slot.uid.clear();
    slot.losses = 0;
    slot.volume = 1;
  }
}

}  // namespace

absl::StatusOr<JobState> StateFrom(JobState of, std::uint64_t job_uid) {
  const std::uint64_t attempt = of.recovery.attempt;
  if (of.checkpoint.snapshot == 0 || of.checkpoint.buckets.empty() ||
      !ReturnToCheckpoint(of, of.row.counted)) {
    return absl::FailedPreconditionError("checkpoint " + std::to_string(of.checkpoint.snapshot) +
                                         " is none to go on from");
  }
  of.recovery.attempt = attempt;
  of.job_uid = job_uid;
  of.phase = Phase::kSuspended;  // a job that goes on
  ForgetOtherModels(of);
  ForgetHistory(of);
  return of;
}

JobState StateWithWeights(const JobSettings& settings,
                          std::uint64_t job_uid,
                          std::vector<CheckpointBucket> buckets) {
  JobState state = NewState(settings, job_uid);
  for (const CheckpointBucket& bucket : buckets) {
    const ServerId holder{.slot = bucket.slot, .incarnation = 0};
    Configuration configuration;
    configuration.version = 1;
    configuration.generation = bucket.generation;
    configuration.primary = holder;
    configuration.replicas = {holder};
    configuration.created = true;
    state.buckets.push_back(std::move(configuration));
  }
  state.histories.assign(buckets.size(), {});
  state.step = Step::kTraining;
  state.last_snapshot = kGivenWeights;
  state.checkpoint = {.snapshot = kGivenWeights, .epoch = 1, .buckets = std::move(buckets)};
  Recovery& recovery = state.recovery;
  recovery.first = state.checkpoint;
  recovery.healthy = {.checkpoint = state.checkpoint, .epoch = 1};
  recovery.newest = recovery.healthy;
  recovery.going_back = true;
  return state;
}

}  // namespace adamant::controller
