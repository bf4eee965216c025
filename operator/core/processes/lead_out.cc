#include "operator/core/processes/lead_out.h"

#include <algorithm>
#include <array>

namespace adamant::controller {
namespace {

struct Stage {
  Role role;
  std::chrono::milliseconds time;
};
constexpr std::array<Stage, 3> kStages = {
    Stage{Role::kWorker, LeadOut::kWorkers},
    Stage{Role::kDataServer, LeadOut::kDataServers},
    Stage{Role::kParameterServer, LeadOut::kParameterServers}};

bool HasProcess(const Roster::Slot& slot) {
  return slot.liveness == Roster::Liveness::kStarting ||
         slot.liveness == Roster::Liveness::kRunning;
}

}  // namespace

bool LeadOut::Step(const std::string& reason, TimePoint now) {
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

void LeadOut::StopNextRole(const std::string& reason, TimePoint now) {
  const Stage& stage = kStages[stopped_++];
  deadline_ =
      now + (settings_.only_checkpoints ? stage.time / 2 : stage.time) + settings_.exit_delay;
  roster_.SendToAll(stage.role, Stop{reason});
  for (const Roster::Slot& slot : roster_.slots()) {
    if (slot.id.role == stage.role && slot.liveness == Roster::Liveness::kStarting) {
      roster_.Kill(slot);
    }
  }
}

bool LeadOut::HasStopped(Role role) const {
  const auto* const end = kStages.begin() + stopped_;
  return std::find_if(kStages.begin(), end, [role](const Stage& stage) {
           return stage.role == role;
         }) != end;
}

bool LeadOut::AnyPresent() const {
  const Role role = kStages[stopped_ - 1].role;
  return std::any_of(roster_.slots().begin(), roster_.slots().end(), [&](const Roster::Slot& slot) {
    return slot.id.role == role && HasProcess(slot);
  });
}

void LeadOut::KillRest() {
  for (const Roster::Slot& slot : roster_.slots()) {
    if (HasProcess(slot)) {
      roster_.Kill(slot);
    }
  }
}

}  // namespace adamant::controller
