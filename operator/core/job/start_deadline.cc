#include "operator/core/job/start_deadline.h"

#include <utility>

#include "operator/core/state/number_text.h"

namespace adamant::controller {

void StartDeadline::Check(bool begun, TimePoint now) {
  if (begun) {
    watch_.Stop();
    if (std::exchange(state_.releases, 0) > 0) {
      outbox_.StateChanged();
    }
    return;
  }
  if (!watch_.IsOver(now)) {
    return;
  }
  const std::string why = "within spec.runPolicy.startDeadline, " +
                          SecondsText(*settings_.start_deadline) +
                          ", the job could not start: " + watch_.Missing();
  if (settings_.on_start_deadline == OnStartDeadline::kFail) {
    return outcome_.End(Phase::kFailed, why);
  }
  Release(why);
}

// So that of jobs that do not fit beside each other one can start.
void StartDeadline::Release(const std::string& why) {
  state_.released = true;
  ++state_.releases;
  const std::string text = why + "; it has released its pods, and tries again " +
                           SecondsText(ReleaseWait(state_.job_uid, state_.releases)) +
                           " after they have ended";
  outbox_.Tell(Note::Kind::kReleased, state_.epoch, text);
  outcome_.End(Phase::kSuspended, text);
}

void StartDeadline::OnEnded(TimePoint now) {
  if (state_.released) {
    begins_again_at_ = now + ReleaseWait(state_.job_uid, state_.releases);
  }
}

}  // namespace adamant::controller
