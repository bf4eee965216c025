#pragma once

#include "operator/kube/job/job_observer.h"
#include "operator/kube_client/api/resource.h"
#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"

namespace adamant {

inline const kube::ObjectKey kMnist{"ml", "mnist"};

/// A job that runs, for tests to change.
struct Standing {
  Standing() {
    state.job_uid = 7;
    status.set_phase(v1::TrainingJobStatus::PHASE_RUNNING);
  }

  /// It has one process, in this slot.
  void SetSlot(controller::SlotId id) {
    report.members.resize(1);
    report.members.front().id = id;
  }

  [[nodiscard]] kube::JobStanding told() const { return {report, state, status, job}; }

  controller::JobReport report;
  controller::JobState state;
  v1::TrainingJobStatus status;
  v1::TrainingJob job;
};

}  // namespace adamant
