#include "operator/core/state/actions.h"

namespace adamant::controller {

std::string_view FailoverPhaseName(FailoverPhase::Kind kind) {
  switch (kind) {
    case FailoverPhase::Kind::kDetect:
      return "detect";
    case FailoverPhase::Kind::kReplace:
      return "replace";
    case FailoverPhase::Kind::kReconcile:
      return "reconcile";
    case FailoverPhase::Kind::kCatchUp:
      return "catch_up";
  }
  return "unknown";
}

std::string_view NoteName(Note::Kind kind) {
  switch (kind) {
    case Note::Kind::kPhase:
      return "phase";
    case Note::Kind::kJoined:
      return "joined";
    case Note::Kind::kLost:
      return "lost";
    case Note::Kind::kRestarting:
      return "restarting";
    case Note::Kind::kEpochOpened:
      return "epoch_opened";
    case Note::Kind::kEpochClosing:
      return "epoch_closing";
    case Note::Kind::kCheckpoint:
      return "checkpoint";
    case Note::Kind::kFailover:
      return "failover";
    case Note::Kind::kRestored:
      return "restored";
    case Note::Kind::kAlarm:
      return "alarm";
    case Note::Kind::kFailure:
      return "failure";
    case Note::Kind::kScaled:
      return "scaled";
    case Note::Kind::kDiverged:
      return "diverged";
    case Note::Kind::kWentBack:
      return "went-back";
    case Note::Kind::kReleased:
      return "released";
    case Note::Kind::kWarning:
      return "warning";
  }
  return "unknown";
}

void Outbox::Add(Action action) { actions_.push_back(std::move(action)); }

void Outbox::Store(const EpochResult& result) {
  std::string digits = std::to_string(result.epoch);
  digits.insert(0, 20 - digits.size(), '0');
  const std::string attempt = result.attempt > 1 ? "." + std::to_string(result.attempt) : "";
  results_.push_back({kResultPrefix + digits + attempt, Encode(result)});
  StateChanged();
}

std::vector<Action> Outbox::Take(const JobState& state) {
  std::vector<Action> actions;
  if (state_changed_) {
    results_.push_back({kStateKey, Encode(state)});
    actions.emplace_back(Persist{std::move(results_)});
  }
  for (Action& action : actions_) {
    actions.push_back(std::move(action));
  }
  state_changed_ = false;
  results_.clear();
  actions_.clear();
  return actions;
}

}  // namespace adamant::controller
