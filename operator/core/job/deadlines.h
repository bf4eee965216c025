#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "operator/core/state/state.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// The deadlines of a job that trains (spec.runPolicy). Time is what the state has counted.
/// Threads: one thread at a time.
class Deadlines {
 public:
  /// The arguments must outlive this.
  Deadlines(const JobSettings& settings, const JobState& state)
      : settings_(settings), state_(state) {}

  /// Returns the field of the deadline that is over; "": none is.
  [[nodiscard]] std::string_view Over() const;

  /// Returns "epoch 3 ran longer than spec.runPolicy.epochDeadline, 60 s"; "": no deadline is over.
  [[nodiscard]] std::string WhyOver() const;

  /// Returns when the next one is over if all time counts from `now`; that of an epoch only while
  /// one is `trained`.
  [[nodiscard]] std::optional<Clock::TimePoint> Next(Clock::TimePoint now, bool trained) const;

 private:
  const JobSettings& settings_;
  const JobState& state_;
};

}  // namespace adamant::controller
