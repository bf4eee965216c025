#pragma once

#include <cstdint>

#include "operator/core/diagnosis/training_meter.h"
#include "operator/core/state/state.h"

namespace adamant::controller {

/// Standing of the training loss against its best so far, which the state has. The loss is taken
/// over periods of an eighth of an epoch: single batches, and stretches in which workers come and
/// go, swing where nothing is wrong.
/// Threads: one thread at a time.
/// Source: docs/design/0010-divergence.md, "A loss that comes back".
class LossTrend {
 public:
  /// Of an epoch; one has kFewestExamples at least.
  static constexpr std::uint64_t kPeriods = 8;
  static constexpr std::uint64_t kFewestExamples = 1'000;

  /// The loss is high when it is so many times the best, and so much of what was gained since the
  /// first value is lost again. One says little where losses are small, the other where they are
  /// large.
  static constexpr double kHigh = 2;
  static constexpr double kGivenBack = 1.0 / 3;

  /// The arguments must outlive this.
  LossTrend(const JobSettings& settings, JobState& state, const TrainingMeter& meter)
      : settings_(settings), state_(state), meter_(meter) {}

  /// The meter counts from 0 again.
  void Restart();

  /// The meter has taken something in. `first`: the loss at the beginning; 0: not known.
  void OnMeter(double first);

  /// Returns for how many periods up to the last one the loss has been high without a break.
  [[nodiscard]] std::uint64_t high_periods() const { return high_periods_; }

  /// Of the last period; 0: there was none.
  [[nodiscard]] double last() const { return last_; }

  /// A loss above the best by this share (0 to 1) of what it takes to be high; 0: there is no best.
  [[nodiscard]] double Limit(double first, double share) const;

 private:
  [[nodiscard]] std::uint64_t Period() const;

  const JobSettings& settings_;
  JobState& state_;
  const TrainingMeter& meter_;
  TrainingMeter::Totals begin_;  // of the period
  double last_ = 0;
  std::uint64_t high_periods_ = 0;
};

}  // namespace adamant::controller
