#include "operator/core/state/outcome.h"

#include <utility>

namespace adamant::controller {

void Outcome::End(Phase phase, std::string message, EndKind end) {
  if (IsDecided()) {
    return;
  }
  state_.phase = phase;
  state_.message = std::move(message);
  state_.end = end;
  outbox_.StateChanged();
}

void Outcome::FailOn(const absl::Status& status, EndKind end) {
  if (!status.ok()) {
    End(Phase::kFailed, std::string(status.message()), end);
  }
}

void Outcome::FailOnLoss(const absl::Status& status) {
  FailOn(status, absl::IsResourceExhausted(status) ? EndKind::kOutOfRestarts : EndKind::kOther);
}

void Outcome::FailAsInvalid(std::string message) {
  if (!IsDecided()) {
    state_.invalid = true;
    End(Phase::kFailed, std::move(message));
  }
}

}  // namespace adamant::controller
