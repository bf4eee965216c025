#include "operator/core/start_watch.h"

#include <algorithm>

#include "services/common/base/rng.h"

namespace adamant::controller {
namespace {

constexpr std::chrono::milliseconds kFirstWait{10'000};
constexpr std::chrono::milliseconds kLongestWait{600'000};

// It was asked for, and has not joined.
bool IsMissing(const Roster::Slot& slot) {
  return slot.liveness == Roster::Liveness::kStarting ||
         slot.liveness == Roster::Liveness::kWaiting;
}

}  // namespace

bool StartWatch::IsOver(TimePoint now) {
  if (std::ranges::none_of(roster_.slots(), IsMissing)) {
    since_.reset();
  } else if (!since_) {
    since_ = now;
  }
  return since_ && settings_.start_deadline && now >= *since_ + *settings_.start_deadline;
}

std::string StartWatch::Missing() const {
  const auto first = std::ranges::find_if(roster_.slots(), IsMissing);
  if (first == roster_.slots().end()) {
    return "";
  }
  const auto others = std::ranges::count_if(roster_.slots(), IsMissing) - 1;
  return ToString(first->id) +
         (others == 0 ? ""
                      : " and " + std::to_string(others) + (others == 1 ? " other" : " others"));
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
