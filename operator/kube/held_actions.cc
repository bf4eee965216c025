#include "operator/kube/held_actions.h"

#include <utility>
#include <variant>

namespace adamant::kube {
namespace {

using controller::Action;

bool LeadsTheEpoch(const controller::ControllerMessage& message) {
  // With the first epoch updates begin: by then it must be stored that the buckets are created, or
  // another controller would have a lost one created anew.
  if (const auto* open = std::get_if<controller::OpenEpoch>(&message)) {
    return open->epoch > 1;
  }
  return std::holds_alternative<controller::CloseEpoch>(message) ||
         std::holds_alternative<controller::FlushWorker>(message) ||
         std::holds_alternative<controller::TakeSnapshot>(message) ||
         std::holds_alternative<controller::Evaluate>(message) ||
         std::holds_alternative<controller::HoldPushes>(message) ||
         std::holds_alternative<controller::ReleasePushes>(message);
}

}  // namespace

std::vector<controller::Persist::Entry> HeldActions::entries() const {
  std::vector<controller::Persist::Entry> entries;
  for (const auto& [key, value] : entries_) {
    entries.push_back({.key = key, .value = value});
  }
  return entries;
}

void HeldActions::Add(const controller::Persist& persist) {
  for (const controller::Persist::Entry& entry : persist.entries) {
    entries_[entry.key] = entry.value;
  }
}

bool HeldActions::PassesOrKeeps(Action& action) {
  if (const auto* persist = std::get_if<controller::Persist>(&action)) {
    Add(*persist);
    return false;
  }
  if (std::holds_alternative<controller::Note>(action) ||
      std::holds_alternative<controller::FailoverPhase>(action)) {
    return true;
  }
  if (const auto* send = std::get_if<controller::Send>(&action)) {
    if (std::holds_alternative<controller::Welcome>(send->message)) {
      unwelcomed_.insert(send->connection);
    } else if (LeadsTheEpoch(send->message) && !unwelcomed_.contains(send->connection)) {
      return true;
    }
  }
  actions_.push_back(std::move(action));
  return false;
}

std::vector<Action> HeldActions::Release() {
  entries_.clear();
  unwelcomed_.clear();
  return std::exchange(actions_, {});
}

}  // namespace adamant::kube
