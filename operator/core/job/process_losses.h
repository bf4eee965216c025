#pragma once

#include <string>

#include "operator/core/buckets/placement.h"
#include "operator/core/processes/process_starter.h"
#include "operator/core/processes/process_table.h"
#include "operator/core/processes/restart_policy.h"
#include "operator/core/processes/silence_watch.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/outcome.h"
#include "operator/core/state/state.h"
#include "operator/core/training/training_run.h"

namespace adamant::controller {

/// Takes processes away: those that have ended, are silent or hang. What is lost is judged, which
/// may fail the job; the rest of it goes on without them.
/// Threads: one thread at a time.
class ProcessLosses {
 public:
  using TimePoint = Clock::TimePoint;

  /// The arguments must outlive this.
  ProcessLosses(const JobSettings& settings,
                const JobState& state,
                ProcessTable& processes,
                const ProcessStarter& starter,
                RestartPolicy& restarts,
                SilenceWatch& silence,
                Placement& placement,
                TrainingRun& training,
                Outcome& outcome)
      : settings_(settings),
        state_(state),
        processes_(processes),
        starter_(starter),
        restarts_(restarts),
        silence_(silence),
        placement_(placement),
        training_(training),
        outcome_(outcome) {}

  void OnExited(const ProcessExited& event, TimePoint now);

  /// Ends who has not been heard, or has not joined, in time.
  void LoseSilent(TimePoint now);

  /// Ends it if it has been busy with one thing for too long.
  void LoseIfHung(ProcessTable::Slot& slot, double busy_seconds, TimePoint now);

 private:
  void LeaveVolume(const ProcessExited& event);

  /// Ends the slot's process, which does not do what it should.
  void GiveUp(ProcessTable::Slot& slot, ProcessLoss loss, TimePoint now);
  void MarkLost(ProcessTable::Slot& slot, ProcessLoss loss, TimePoint now);

  /// A worker that was one too many has ended.
  void OnLeft(ProcessTable::Slot& slot, TimePoint now);

  const JobSettings& settings_;
  const JobState& state_;
  ProcessTable& processes_;
  const ProcessStarter& starter_;
  RestartPolicy& restarts_;
  SilenceWatch& silence_;
  Placement& placement_;
  TrainingRun& training_;
  Outcome& outcome_;
};

}  // namespace adamant::controller
