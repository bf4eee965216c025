#pragma once

#include <span>

#include "operator/core/processes/process_table.h"
#include "operator/core/processes/registration.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"
#include "operator/core/training/data_reports.h"
#include "operator/core/training/training_run.h"

namespace adamant::controller {

/// Answers processes that want to join: lets them in, and tells them all they need to begin.
/// Threads: one thread at a time.
class Admission {
 public:
  /// The arguments must outlive this.
  Admission(const JobSettings& settings,
            const JobState& state,
            Outbox& outbox,
            ProcessTable& processes,
            const DataReports& data,
            TrainingRun& training)
      : settings_(settings),
        state_(state),
        outbox_(outbox),
        processes_(processes),
        registration_(settings, outbox, processes),
        data_(data),
        training_(training) {}

  void OnJoin(ConnectionId connection, const Join& join, Clock::TimePoint now);

  /// As Registration says.
  void OnWaiting(std::span<const StartProcess> processes, Clock::TimePoint now) {
    registration_.OnWaiting(processes, now);
  }

 private:
  [[nodiscard]] bool TurnsAway(ConnectionId connection, const Join& join, Clock::TimePoint now);
  void SendWelcome(SlotId id);

  const JobSettings& settings_;
  const JobState& state_;
  Outbox& outbox_;
  ProcessTable& processes_;
  Registration registration_;
  const DataReports& data_;
  TrainingRun& training_;
};

}  // namespace adamant::controller
