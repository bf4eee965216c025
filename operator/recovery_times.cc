#include "operator/recovery_times.h"

#include <algorithm>

#include "services/common/base/seconds.h"

namespace adamant {
namespace {

using Members = std::vector<controller::JobReport::MemberReport>;

constexpr std::string_view kRestart = "restart";

}  // namespace

RecoveryTimes::RecoveryTimes() : sums_{{kRestart, {}}} {
  for (const controller::FailoverPhase::Kind kind : controller::kFailoverPhases) {
    sums_[controller::FailoverPhaseName(kind)] = {};
  }
}

void RecoveryTimes::Add(std::string_view phase, double seconds) {
  ++sums_[phase].count;
  sums_[phase].seconds += seconds;
}

void RecoveryTimes::OnPhase(const controller::FailoverPhase& phase) {
  Add(controller::FailoverPhaseName(phase.kind), phase.seconds);
}

void RecoveryTimes::OnNote(const controller::Note& note, Clock::TimePoint now) {
  if (!note.member) {
    return;
  }
  if (note.kind == controller::Note::Kind::kLost) {
    lost_.try_emplace(*note.member, now);
  } else if (note.kind == controller::Note::Kind::kJoined) {
    if (const auto lost = lost_.find(*note.member); lost != lost_.end()) {
      Add(kRestart, Seconds(now - lost->second));
      lost_.erase(lost);
    }
  }
}

void RecoveryTimes::KeepSlots(const Members& members) {
  std::erase_if(lost_, [&](const auto& lost) {
    return std::ranges::find(members, lost.first, &Members::value_type::id) == members.end();
  });
}

}  // namespace adamant
