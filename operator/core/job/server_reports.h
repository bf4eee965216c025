#pragma once

#include <cstdint>

#include "operator/core/buckets/placement.h"
#include "operator/core/processes/roster.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/outcome.h"
#include "operator/core/training/training_run.h"

namespace adamant::controller {

/// Takes what parameter servers report of their disks and buckets.
/// Threads: one thread at a time.
class ServerReports {
 public:
  using TimePoint = Clock::TimePoint;

  /// The arguments must outlive this.
  ServerReports(const Roster& roster, Placement& placement, TrainingRun& training, Outcome& outcome)
      : roster_(roster), placement_(placement), training_(training), outcome_(outcome) {}

  /// Takes what is about buckets; ignores other messages.
  void OnMessage(MemberId server, const MemberMessage& message, TimePoint now);

  void OnProgress(MemberId server, const ParameterServerProgress& progress, TimePoint now);

 private:
  void FailOnOldState(MemberId server, const StoredBuckets& stored);

  const Roster& roster_;
  Placement& placement_;
  TrainingRun& training_;
  Outcome& outcome_;
};

}  // namespace adamant::controller
