#include "services/parameter_server/core/storage/scrub_schedule.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace adamant::parameter_server {

ScrubSchedule::ScrubSchedule(const ScrubLimits& limits, const Clock& clock)
    : limits_(limits), clock_(clock), due_at_(clock.Now() + limits.pause) {}

void ScrubSchedule::Begin(std::vector<ScrubbedValue> values) {
  values_ = std::move(values);
  next_ = 0;
}

const ScrubbedValue* ScrubSchedule::Next() { return IsOver() ? nullptr : &values_[next_++]; }

void ScrubSchedule::Hurry() {
  if (hurried_ == 0) {
    hurried_ = values_.size();
    due_at_ = clock_.Now();
  }
}

void ScrubSchedule::Finish(bool found, bool damaged) {
  if (hurried_ > 0) {
    --hurried_;
  } else if (damaged) {
    hurried_ = values_.size();
  }
  const auto values = std::max<std::size_t>(values_.size(), 1);
  const Clock::Duration share = limits_.pass / static_cast<std::int64_t>(values);
  const bool hurries = found && hurried_ > 0;
  due_at_ = clock_.Now() + (hurries ? Clock::Duration::zero() : std::min(share, limits_.pause));
}

}  // namespace adamant::parameter_server
