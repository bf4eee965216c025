#pragma once

#include <variant>

#include "operator/core/job/job_report.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"
#include "operator/kube_client/api/resource.h"

namespace adamant::v1 {
class TrainingJob;
class TrainingJobStatus;
}  // namespace adamant::v1

namespace adamant::kube {

/// Standing of a job. What it refers to is valid for the call that it is told in.
struct JobStanding {
  const controller::JobReport& report;
  const controller::JobState& state;
  const v1::TrainingJobStatus& status;  ///< what users are told of these
  const v1::TrainingJob& job;           ///< as it is to run
};

/// Is told what the controllers of jobs measure, and what becomes of jobs. Calls must be quick.
/// Threads: any; of each job by one at a time.
class JobObserver {
 public:
  virtual ~JobObserver() = default;

  /// Comes whenever a job was worked on: while it trains at least once a second.
  virtual void OnReport(const ObjectKey& job, const JobStanding& standing) = 0;

  /// The job is not led any more: it is over, or deleted, or somebody else leads it.
  virtual void OnGone(const ObjectKey& job) = 0;

  /// No job is led any more.
  virtual void OnAllGone() = 0;

  /// Calls the function below that is for this action, if there is one.
  void OnAction(const ObjectKey& job, const controller::Action& action) {
    if (const auto* phase = std::get_if<controller::FailoverPhase>(&action)) {
      OnFailoverPhase(job, *phase);
    } else if (const auto* promoted = std::get_if<controller::Promoted>(&action)) {
      OnPromoted(job, *promoted);
    } else if (const auto* note = std::get_if<controller::Note>(&action)) {
      OnNote(job, *note);
    }
  }

 private:
  virtual void OnFailoverPhase(const ObjectKey& job, const controller::FailoverPhase& phase) = 0;
  virtual void OnPromoted(const ObjectKey& job, const controller::Promoted& promoted) = 0;
  virtual void OnNote(const ObjectKey& job, const controller::Note& note) = 0;
};

}  // namespace adamant::kube
