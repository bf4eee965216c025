#include "tests/simulation/operator/loss_book.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "services/common/base/exit_codes.h"

namespace adamant::orchestration {

using controller::JobState;
using controller::Role;
using controller::StartProcess;
using kube::Json;

namespace {

// A process that has ended may have seemed silent if its end was not seen for this long: silence
// counts after 10 s, and the last sign of life was up to 4 s before the end.
constexpr std::chrono::seconds kMaySeemSilent{5};

// An operator may go by a number of workers that is as old as this.
constexpr std::chrono::seconds kOldNews{30};

// A loss is noticed within this time, or the job has ended before.
constexpr std::chrono::seconds kNoticed{15};

std::string_view NameOf(Role role) {
  switch (role) {
    case Role::kDataServer:
      return "DataServer";
    case Role::kParameterServer:
      return "ParameterServer";
    case Role::kWorker:
      return "Worker";
  }
  return "";
}

template <class T>
bool Lists(const Json& rule, const char* list, const T& value) {
  const Json* values = kube::Find(rule, {list});
  return values == nullptr || values->empty() ||
         std::ranges::find(*values, Json(value)) != values->end();
}

std::string Text(const StartProcess& process) {
  return ToString(process.id) + " generation " + std::to_string(process.generation);
}

}  // namespace

void LossBook::OnSpec(const Json& spec, TimePoint now) {
  const Json* rules = kube::Find(spec, {"runPolicy", "failureRules"});
  rules_ = rules != nullptr ? *rules : Json::array();
  const std::int64_t workers = kube::IntAt(spec, {"distribution", "workers"});
  const std::int64_t before = workers_.value_or(workers);
  const auto [fewer, more] = std::minmax(workers, before);
  for (std::int64_t slot = fewer; slot < more; ++slot) {
    unwanted_[slot] = now;  // from now on, or until now
  }
  workers_ = workers;
}

void LossBook::OnPod(const kube::PodView& view, bool node_away, TimePoint now) {
  const auto [entry, is_new] = fates_.try_emplace(view.pod.process);
  Fate& fate = entry->second;
  if (is_new) {
    fate.made = now;
  }
  fate.node = view.node;
  fate.node_away = fate.node_away || node_away;
  const bool ended = view.pod.state == kube::ObservedPod::State::kEnded;
  if (ended && !view.pod.disrupted) {
    fate.exit_code = view.pod.exit_code;
  }
  fate.disrupted = fate.disrupted || view.pod.disrupted;
  if ((ended || fate.disrupted) && !fate.sign) {
    fate.sign = now;
  }
}

void LossBook::OnPodGone(const StartProcess& process, TimePoint now) {
  Fate& fate = fates_[process];
  fate.node.clear();
  fate.disrupted = true;
  fate.sign = fate.sign.value_or(now);
}

void LossBook::OnNodeAway(const std::string& node) {
  for (auto& [process, fate] : fates_) {
    fate.node_away = fate.node_away || fate.node == node;
  }
}

void LossBook::OnPaused(const StartProcess& process) { fates_[process].paused = true; }

void LossBook::OnDismissed(const StartProcess& process) { fates_[process].dismissed = true; }

void LossBook::OnCrash(const StartProcess& process, const JobState& state, TimePoint now) {
  const controller::SlotRecord& slot = state.slots[SlotIndex(servers_, process.id)];
  Fate& fate = fates_[process];
  if (slot.generation == process.generation && slot.concluded != process.generation &&
      !fate.dismissed) {
    fate.crashed = now;
  }
}

LossBook::Verdict LossBook::Judge(const std::string& cause,
                                  Role role,
                                  std::optional<int> exit_code) const {
  for (const Json& rule : rules_) {
    const bool any_code = kube::Find(rule, {"exitCodes"}) == nullptr;
    if (kube::StringAt(rule, {"cause"}) == cause && Lists(rule, "roles", NameOf(role)) &&
        (any_code || (exit_code && Lists(rule, "exitCodes", *exit_code)))) {
      const std::string action = kube::StringAt(rule, {"action"});
      return action == "FailJob"  ? Verdict::kFail
             : action == "Ignore" ? Verdict::kIgnore
                                  : Verdict::kRestart;
    }
  }
  if (cause != "Exit") {
    return Verdict::kIgnore;
  }
  return exit_code == kBadConfiguration ? Verdict::kFail : Verdict::kRestart;
}

std::set<LossBook::Verdict> LossBook::VerdictsOn(Role role, const Fate& fate, TimePoint at) const {
  std::set<Verdict> verdicts;
  if (fate.exit_code && !fate.dismissed) {
    verdicts.insert(Judge("Exit", role, fate.exit_code));
  }
  if (fate.disrupted) {
    verdicts.insert(Judge("Disruption", role, std::nullopt));
  }
  if (fate.node_away) {
    verdicts.insert(Judge("NodeLost", role, std::nullopt));
  }
  if (fate.paused || (fate.sign && *fate.sign + kMaySeemSilent <= at)) {
    verdicts.insert(Judge("Exit", role, std::nullopt));
  }
  return verdicts;
}

bool LossBook::MayBeSurplus(const StartProcess& process, const Fate& fate) const {
  if (process.id.role != Role::kWorker) {
    return false;
  }
  const auto unwanted = unwanted_.find(process.id.slot);
  return process.id.slot >= workers_.value_or(0) ||
         (unwanted != unwanted_.end() && unwanted->second + kOldNews >= fate.made);
}

std::string LossBook::Check(const JobState& before,
                            const JobState& now,
                            bool resumed,
                            TimePoint at) const {
  std::uint32_t least = 0;
  std::uint32_t most = 0;
  std::string judged;
  for (std::size_t i = 0; i < std::min(before.slots.size(), now.slots.size()); ++i) {
    const std::uint64_t newest = now.slots[i].concluded;
    for (std::uint64_t generation = before.slots[i].concluded + 1; generation <= newest;
         ++generation) {
      const StartProcess process{.id = SlotAt(servers_, i), .generation = generation};
      const auto fate = fates_.find(process);
      if (fate == fates_.end()) {
        continue;  // it never was
      }
      judged += " " + Text(process);
      const std::set<Verdict> verdicts = VerdictsOn(process.id.role, fate->second, at);
      const bool counts = verdicts.contains(Verdict::kRestart);
      most += counts ? 1 : 0;
      least += counts && verdicts.size() == 1 && generation == newest && !fate->second.dismissed &&
                       !MayBeSurplus(process, fate->second)
                   ? 1
                   : 0;
    }
  }
  const std::uint32_t counted = now.restarts - (resumed ? 0 : before.restarts);
  if (least <= counted && counted <= most) {
    return "";
  }
  return std::to_string(counted) + " restarts were counted instead of " + std::to_string(least) +
         " to " + std::to_string(most) + " for" + judged;
}

std::string LossBook::CheckMissed(const JobState& state, TimePoint ended) const {
  for (const auto& [process, fate] : fates_) {
    const bool must = fate.crashed && *fate.crashed < ended - kNoticed &&
                      !MayBeSurplus(process, fate) &&
                      !VerdictsOn(process.id.role, fate, *fate.crashed).empty();
    if (must && state.slots[SlotIndex(servers_, process.id)].concluded < process.generation) {
      return "the loss of " + Text(process) + " was never judged";
    }
  }
  return "";
}

bool LossBook::MayFail(TimePoint at) const {
  return std::ranges::any_of(fates_, [&](const auto& entry) {
    return VerdictsOn(entry.first.id.role, entry.second, at).contains(Verdict::kFail);
  });
}

}  // namespace adamant::orchestration
