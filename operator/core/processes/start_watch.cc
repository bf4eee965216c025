#include "operator/core/processes/start_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "services/common/base/rng.h"

namespace adamant::controller {
namespace {

constexpr std::chrono::milliseconds kFirstWait{10'000};
constexpr std::chrono::milliseconds kLongestWait{600'000};

// It was asked for, and has not joined.
bool IsMissing(const ProcessTable::Slot& slot) {
  return slot.liveness == ProcessTable::Liveness::kStarting ||
         slot.liveness == ProcessTable::Liveness::kWaiting;
}

}  // namespace

bool StartWatch::IsOver(TimePoint now) {
  if (std::ranges::none_of(processes_.slots(), IsMissing)) {
    since_.reset();
    why_.clear();
  } else if (!since_) {
    since_ = now;
  }
  return since_ && settings_.start_deadline && now >= *since_ + *settings_.start_deadline;
}

void StartWatch::Explain(const std::map<SlotId, std::string>& why) {
  for (const auto& [id, words] : why) {
    why_[id] = words;
  }
}

std::string StartWatch::Missing() const {
  std::vector<SlotId> missing;
  std::map<Role, std::pair<int, int>> counts;  // of the missing, and of all
  for (const ProcessTable::Slot& slot : processes_.slots()) {
    auto& [absent, all] = counts[slot.id.role];
    ++all;
    if (IsMissing(slot)) {
      ++absent;
      missing.push_back(slot.id);
    }
  }
  if (missing.empty()) {
    return "";
  }
  const std::size_t others = missing.size() - 1;
  std::string text = ToString(missing.front());
  if (others > 0) {
    text += " and " + std::to_string(others) + (others == 1 ? " other" : " others");
  }
  std::string separator = " did not join (";
  for (const auto& [role, count] : counts) {
    if (count.first > 0) {
      text += separator + std::string(RoleName(role)) + ": " + std::to_string(count.first) +
              " of " + std::to_string(count.second) + " pods";
      separator = ", ";
    }
  }
  text += ")";
  const auto told =
      std::ranges::find_if(missing, [this](const SlotId& id) { return why_.contains(id); });
  return told == missing.end() ? text : text + "; " + ToString(*told) + ": " + why_.at(*told);
}

std::optional<StartWatch::TimePoint> StartWatch::NextTimer() const {
  return since_ && settings_.start_deadline ? std::optional(*since_ + *settings_.start_deadline)
                                            : std::nullopt;
}

std::chrono::milliseconds ReleaseWait(std::uint64_t job_uid, std::uint32_t releases) {
  std::chrono::milliseconds wait = kFirstWait;
  for (std::uint32_t i = 1; i < releases && wait < kLongestWait; ++i) {
    wait *= 2;
  }
  wait = std::min(wait, kLongestWait);
  Rng chance(MixSeed(job_uid, releases));
  const auto spread = chance.Below(static_cast<std::uint64_t>(wait.count()));
  return wait / 2 + std::chrono::milliseconds(spread);
}

}  // namespace adamant::controller
