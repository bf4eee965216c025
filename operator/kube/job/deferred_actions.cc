#include "operator/kube/job/deferred_actions.h"

#include <algorithm>
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
         std::holds_alternative<controller::PausePushes>(message) ||
         std::holds_alternative<controller::ResumePushes>(message);
}

bool IsMembershipFor(controller::ConnectionId connection, const Action& action) {
  const auto* send = std::get_if<controller::Send>(&action);
  return send != nullptr && send->connection == connection &&
         std::holds_alternative<controller::Membership>(send->message);
}

// The one that waits and that another makes needless.
std::deque<Action>::iterator FindOlder(const Action& newer, std::deque<Action>& waiting) {
  const auto* send = std::get_if<controller::Send>(&newer);
  const bool stores = std::holds_alternative<controller::Persist>(newer);
  if (!stores && (send == nullptr || !IsMembershipFor(send->connection, newer))) {
    return waiting.end();
  }
  return std::ranges::find_if(waiting, [&](const Action& action) {
    return stores ? std::holds_alternative<controller::Persist>(action)
                  : IsMembershipFor(send->connection, action);
  });
}

void AddEntries(controller::Persist from, controller::Persist& to) {
  for (controller::Persist::Entry& entry : from.entries) {
    const auto same = std::ranges::find(to.entries, entry.key, &controller::Persist::Entry::key);
    if (same == to.entries.end()) {
      to.entries.push_back(std::move(entry));
    } else {
      same->value = std::move(entry.value);
    }
  }
}

}  // namespace

void AddAction(Action action, std::deque<Action>& waiting) {
  const auto older = FindOlder(action, waiting);
  if (older == waiting.end()) {
    waiting.push_back(std::move(action));
  } else if (auto* persist = std::get_if<controller::Persist>(&action)) {
    AddEntries(std::move(*persist), std::get<controller::Persist>(*older));
  } else {
    *older = std::move(action);
  }
}

std::vector<controller::Persist::Entry> DeferredActions::entries() const {
  std::vector<controller::Persist::Entry> entries;
  for (const auto& [key, value] : entries_) {
    entries.push_back({.key = key, .value = value});
  }
  return entries;
}

void DeferredActions::Add(const controller::Persist& persist) {
  for (const controller::Persist::Entry& entry : persist.entries) {
    entries_[entry.key] = entry.value;
  }
}

bool DeferredActions::PassesOrKeeps(Action& action) {
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
  AddAction(std::move(action), actions_);
  return false;
}

std::deque<Action> DeferredActions::Release() {
  entries_.clear();
  unwelcomed_.clear();
  return std::exchange(actions_, {});
}

}  // namespace adamant::kube
