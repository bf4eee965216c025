#include "operator/core/job/deadlines.h"

#include <algorithm>

#include "operator/core/state/number_text.h"

namespace adamant::controller {
namespace {

constexpr std::string_view kActiveDeadline = "spec.runPolicy.activeDeadline";
constexpr std::string_view kEpochDeadline = "spec.runPolicy.epochDeadline";

}  // namespace

std::string_view Deadlines::Over() const {
  if (settings_.active_deadline && state_.active >= *settings_.active_deadline) {
    return kActiveDeadline;
  }
  const bool over = settings_.epoch_deadline && state_.epoch_active >= *settings_.epoch_deadline;
  return over ? kEpochDeadline : "";
}

std::string Deadlines::WhyOver() const {
  const std::string_view field = Over();
  if (field.empty()) {
    return "";
  }
  const bool of_job = field == kActiveDeadline;
  const std::string what = of_job ? "the job" : "epoch " + std::to_string(state_.epoch);
  return what + " ran longer than " + std::string(field) + ", " +
         SecondsText(of_job ? *settings_.active_deadline : *settings_.epoch_deadline);
}

std::optional<Clock::TimePoint> Deadlines::Next(Clock::TimePoint now, bool trained) const {
  std::optional<Clock::TimePoint> next;
  if (settings_.active_deadline) {
    next = now + (*settings_.active_deadline - state_.active);
  }
  if (settings_.epoch_deadline && trained) {
    const Clock::TimePoint epoch = now + (*settings_.epoch_deadline - state_.epoch_active);
    next = next ? std::min(*next, epoch) : epoch;
  }
  return next;
}

}  // namespace adamant::controller
