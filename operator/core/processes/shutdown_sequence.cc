#include "operator/core/processes/shutdown_sequence.h"

#include <algorithm>
#include <array>

namespace adamant::controller {
namespace {

struct Stage {
  Role role;
  std::chrono::milliseconds time;
};
constexpr std::array<Stage, 3> kStages = {
    Stage{Role::kWorker, ShutdownSequence::kWorkers},
    Stage{Role::kDataServer, ShutdownSequence::kDataServers},
    Stage{Role::kParameterServer, ShutdownSequence::kParameterServers}};

}  // namespace

void ShutdownSequence::KillLeftovers() {
  for (const ProcessTable::Slot& slot : processes_.slots()) {
    processes_.Kill(slot);
  }
  outbox_.Add(Finished{});
}

bool ShutdownSequence::Step(const std::string& reason, TimePoint now) {
  while (stopped_ == 0 || !AnyPresent() || now >= deadline_) {
    if (stopped_ == kStages.size()) {
      KillRest();
      outbox_.Add(Finished{});
      return true;
    }
    StopNextRole(reason, now);
  }
  return false;
}

void ShutdownSequence::StopNextRole(const std::string& reason, TimePoint now) {
  const Stage& stage = kStages[stopped_++];
  deadline_ =
      now + (settings_.only_checkpoints ? stage.time / 2 : stage.time) + settings_.exit_delay;
  processes_.SendToAll(stage.role, Stop{reason});
  for (const ProcessTable::Slot& slot : processes_.slots()) {
    if (slot.id.role == stage.role && slot.liveness == ProcessTable::Liveness::kStarting) {
      processes_.Kill(slot);
    }
  }
}

bool ShutdownSequence::HasStopped(Role role) const {
  const auto* const end = kStages.begin() + stopped_;
  return std::find_if(kStages.begin(), end, [role](const Stage& stage) {
           return stage.role == role;
         }) != end;
}

bool ShutdownSequence::AnyPresent() const {
  const Role role = kStages[stopped_ - 1].role;
  return std::any_of(
      processes_.slots().begin(), processes_.slots().end(), [&](const ProcessTable::Slot& slot) {
        return slot.id.role == role && slot.has_process();
      });
}

void ShutdownSequence::KillRest() {
  for (const ProcessTable::Slot& slot : processes_.slots()) {
    if (slot.has_process()) {
      processes_.Kill(slot);
    }
  }
}

}  // namespace adamant::controller
