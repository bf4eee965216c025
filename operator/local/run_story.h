#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"
#include "operator/local/history/recorder.h"
#include "operator/local/observer.h"
#include "operator/local/run_folder/run_paths.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// The story of a run as it is told: recorded in its folder, and to the observer. What cannot be
/// recorded is not worth stopping the run for: the user hears of it once.
/// Threads: one.
class RunStory {
 public:
  /// All but `paths` must outlive this. `state`: of the job, for its epoch.
  /// `results`: what is stored of earlier. Errors: those of Recorder::Open.
  static absl::StatusOr<RunStory> Open(const v1::TrainingJob& job,
                                       const RunPaths& paths,
                                       const controller::JobState& state,
                                       std::vector<controller::EpochResult> results,
                                       Observer& observer);

  /// Draws the curve, if it could not be before.
  void Begin() { Record(recorder_.Finish()); }

  void Tell(const controller::Note& note);
  void TellWarnings(std::vector<std::string> warnings);
  void TellEpoch(const controller::EpochResult& result);

  /// `alarms`: of what was damaged and could be made good; what the recorder has of that is added.
  void TellAlarms(std::vector<std::string> alarms);

  /// Tells of the first that is not OK, which is not recorded.
  void Record(const absl::Status& status);

  /// Completes the record, and puts manifests back that somebody has removed meanwhile.
  void Finish();

  [[nodiscard]] const std::vector<controller::EpochResult>& results() const {
    return recorder_.results();
  }

 private:
  RunStory(const v1::TrainingJob& job,
           const RunPaths& paths,
           const controller::JobState& state,
           Recorder recorder,
           Observer& observer);

  // Of the recorder itself, so that it is not recorded.
  void Alarm(std::string text);

  const v1::TrainingJob& job_;
  const RunPaths paths_;
  const controller::JobState& state_;
  Observer& observer_;
  Recorder recorder_;
  bool recording_failed_ = false;
};

}  // namespace adamant::local
