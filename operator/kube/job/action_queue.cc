#include "operator/kube/job/action_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "services/common/base/status_macros.h"

namespace adamant::kube {

using controller::Action;

void ActionQueue::Perform(std::vector<Action> actions) {
  for (Action& action : actions) {
    AddAction(std::move(action), actions_);
  }
  PerformAll();
}

void ActionQueue::Together(const std::function<void()>& handle) {
  if (waits_ || collects_) {
    return handle();
  }
  collects_ = true;
  handle();
  collects_ = false;
  PerformAll();
}

void ActionQueue::Meanwhile(const std::function<void()>& handle) {
  waits_ = true;
  handle();
  waits_ = false;
}

// To store one may wait, and what is left is then performed meanwhile.
void ActionQueue::PerformAll() {
  while (!actions_.empty() && taken_over_.ok()) {
    if (collects_ && std::holds_alternative<controller::Persist>(actions_.front())) {
      return;  // nothing that comes after it may be done before it is stored
    }
    Action action = std::move(actions_.front());
    actions_.pop_front();
    if (held_.empty() || held_.PassesOrKeeps(action)) {
      Do(action);
    }
  }
}

void ActionQueue::Do(const Action& action) {
  const auto* persist = std::get_if<controller::Persist>(&action);
  if (persist == nullptr) {
    return perform_(action);
  }
  held_.Add(*persist);
  if (!waits_) {
    StoreHeld().IgnoreError();  // it is held, and tried again
  }
}

absl::Status ActionQueue::StoreHeld() {
  while (!held_.empty() && taken_over_.ok()) {
    const std::vector<controller::Persist::Entry> entries = held_.entries();
    ADAMANT_RETURN_IF_ERROR(Store(entries));
    if (held_.entries() == entries) {  // else something was added meanwhile
      std::deque<Action> released = held_.Release();
      std::ranges::move(released, std::inserter(actions_, actions_.begin()));
      PerformAll();
    }
  }
  return taken_over_;
}

absl::Status ActionQueue::Store(const std::vector<controller::Persist::Entry>& entries) {
  ADAMANT_RETURN_IF_ERROR(pause_.Check(clock_.Now()));
  const absl::Status status = store_.CompareAndSwap(version_, entries);
  pause_.Note(status, clock_.Now());
  if (absl::IsAborted(status)) {
    taken_over_ = status;
    return status;
  }
  writer_.Note("update the job's state", status);
  ADAMANT_RETURN_IF_ERROR(status);
  ++version_;
  if (const auto loss = store_.TakeLoss()) {
    notes_.Tell({.kind = controller::Note::Kind::kAlarm, .text = *loss});
  }
  return absl::OkStatus();
}

}  // namespace adamant::kube
