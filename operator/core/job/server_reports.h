#pragma once

#include <cstdint>

#include "operator/core/buckets/placement.h"
#include "operator/core/processes/process_table.h"
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
  ServerReports(const ProcessTable& processes,
                Placement& placement,
                TrainingRun& training,
                Outcome& outcome)
      : processes_(processes), placement_(placement), training_(training), outcome_(outcome) {}

  /// Takes what is about buckets; ignores other messages.
  void OnMessage(SlotId server, const MemberMessage& message, TimePoint now);

  void OnProgress(SlotId server, const ParameterServerProgress& progress, TimePoint now);

 private:
  void FailOnOldState(SlotId server, const StoredBuckets& stored);

  const ProcessTable& processes_;
  Placement& placement_;
  TrainingRun& training_;
  Outcome& outcome_;
};

}  // namespace adamant::controller
