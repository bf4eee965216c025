#include <string>
#include <string_view>

#include "operator/core/job/job_controller.h"

// What ends a job, or puts it off, when its time is over.
namespace adamant::controller {
namespace {

constexpr std::string_view kActiveDeadline = "spec.runPolicy.activeDeadline";
constexpr std::string_view kEpochDeadline = "spec.runPolicy.epochDeadline";

std::string Seconds(std::chrono::milliseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

}  // namespace

std::string_view JobController::OverDeadline() const {
  if (settings_.active_deadline && state_.active >= *settings_.active_deadline) {
    return kActiveDeadline;
  }
  const bool over = settings_.epoch_deadline && state_.epoch_active >= *settings_.epoch_deadline;
  return over ? kEpochDeadline : "";
}

void JobController::CheckDeadlines() {
  const std::string_view field = OverDeadline();
  if (field.empty()) {
    return;
  }
  const bool of_job = field == kActiveDeadline;
  const std::string what = of_job ? "the job" : "epoch " + std::to_string(state_.epoch);
  End(Phase::kFailed,
      what + " ran longer than " + std::string(field) + ", " +
          Seconds(of_job ? *settings_.active_deadline : *settings_.epoch_deadline));
}

void JobController::CheckStart(TimePoint now) {
  if (ready_ || !start_watch_.IsOver(now)) {
    return;
  }
  const std::string why = "within spec.runPolicy.startDeadline, " +
                          Seconds(*settings_.start_deadline) +
                          ", the job could not start: " + start_watch_.Missing();
  if (settings_.on_start_deadline == OnStartDeadline::kFail) {
    return End(Phase::kFailed, why);
  }
  Release(why);
}

// So that of jobs that do not fit beside each other one can start.
void JobController::Release(const std::string& why) {
  state_.released = true;
  ++state_.releases;
  const std::string text = why + "; it has released its pods, and tries again " +
                           Seconds(ReleaseWait(state_.job_uid, state_.releases)) +
                           " after they have ended";
  outbox_.Tell(Note::Kind::kReleased, state_.epoch, text);
  End(Phase::kSuspended, text);
}

}  // namespace adamant::controller
