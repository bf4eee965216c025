#include "operator/local/run_story.h"

#include <optional>
#include <utility>

#include "operator/local/state/resumption.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/ids.h"
#include "services/common/base/status_macros.h"

namespace adamant::local {

absl::StatusOr<RunStory> RunStory::Open(const v1::TrainingJob& job,
                                        const RunPaths& paths,
                                        const controller::JobState& state,
                                        std::vector<controller::EpochResult> results,
                                        Observer& observer) {
  ADAMANT_ASSIGN_OR_RETURN(Recorder recorder,
                           Recorder::Open(paths, job.metadata().name(), std::move(results)));
  return RunStory(job, paths, state, std::move(recorder), observer);
}

RunStory::RunStory(const v1::TrainingJob& job,
                   const RunPaths& paths,
                   const controller::JobState& state,
                   Recorder recorder,
                   Observer& observer)
    : job_(job),
      paths_(paths),
      state_(state),
      observer_(observer),
      recorder_(std::move(recorder)) {}

void RunStory::Tell(const controller::Note& note) {
  Record(recorder_.Note(note));
  observer_.OnNote(note);
}

void RunStory::TellWarnings(std::vector<std::string> warnings) {
  for (std::string& text : warnings) {
    Tell({.kind = controller::Note::Kind::kWarning, .text = std::move(text)});
  }
}

void RunStory::TellEpoch(const controller::EpochResult& result) {
  Record(recorder_.Epoch(result));
  observer_.OnEpoch(result);
}

void RunStory::TellAlarms(std::vector<std::string> alarms) {
  if (std::string missing = recorder_.TakeAlarm(); !missing.empty()) {
    alarms.push_back(std::move(missing));
  }
  const DataEpoch epoch = state_.epoch;
  for (std::string& alarm : alarms) {
    Tell({.kind = controller::Note::Kind::kAlarm, .epoch = epoch, .text = std::move(alarm)});
  }
}

void RunStory::Record(const absl::Status& status) {
  if (!status.ok() && !std::exchange(recording_failed_, true)) {
    Alarm(std::string(status.message()));
  }
}

void RunStory::Finish() {
  const absl::StatusOr<bool> brought_back = BringBackManifests(job_, paths_);
  Record(brought_back.status());
  if (brought_back.value_or(false)) {
    Alarm(paths_.job().string() +
          " or started.yaml beside it was removed while the job ran; both "
          "are there again");
  }
  if (const absl::Status status = recorder_.Finish(); !status.ok()) {
    Alarm("the story of the run is not complete: " + std::string(status.message()) +
          (CanBeResumed(paths_) ? "; once that is put right, adamant train --resume " +
                                      paths_.root.string() + " completes it"
                                : ""));
  }
}

void RunStory::Alarm(std::string text) {
  observer_.OnNote({.kind = controller::Note::Kind::kAlarm,
                    .member = std::nullopt,
                    .epoch = state_.epoch,
                    .text = std::move(text)});
}

}  // namespace adamant::local
