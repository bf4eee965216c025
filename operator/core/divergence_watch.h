#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "operator/core/actions.h"
#include "operator/core/messages.h"
#include "operator/core/state.h"
#include "operator/core/training_meter.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Notices that training diverges, by what workers tell while an epoch is open and by the result of
/// its evaluation. What it says continues "training diverged in epoch 3: ". Updates with NaN or
/// infinity workers notice themselves (Failure::diverged).
/// Threads: one thread at a time.
class DivergenceWatch {
 public:
  using TimePoint = Clock::TimePoint;

  /// The loss is far above its first value when it is so many times that.
  static constexpr double kFarAbove = 3;

  /// For this time it has to be, over windows of TrainingMeter::kWindow each.
  static constexpr std::chrono::seconds kLong{10};

  /// The first loss is the mean over at least so many examples.
  static constexpr std::uint64_t kFirstExamples = 1'000;

  /// Of the loss of a model that knows nothing: with more than that it learns nothing.
  static constexpr double kHardlyLess = 0.97;

  /// A model that learns nothing has diverged, and is not just slow, when so many of the units of a
  /// layer are dead, or when weights have grown so many times.
  static constexpr double kMostDead = 0.5;
  static constexpr double kMostGrown = 1.5;

  /// Of the best top-1 so far: a model with less is not healthy; with less than that it has
  /// diverged.
  static constexpr double kHealthyShare = 0.9;
  static constexpr double kFallenShare = 0.5;

  /// The arguments must outlive this.
  DivergenceWatch(const JobSettings& settings,
                  JobState& state,
                  Outbox& outbox,
                  const TrainingMeter& meter)
      : settings_(settings), state_(state), outbox_(outbox), meter_(meter) {}

  /// Another attempt begins.
  void Restart();

  /// A worker has told this, which the meter has taken in.
  std::optional<std::string> OnWorker(const WorkerProgress& progress, TimePoint now);

  /// An epoch has this result; `at_chance` as IsAtChance.
  [[nodiscard]] std::optional<std::string> Judge(const EpochResult& row, bool at_chance) const;

  /// Whether the model of a result that has not diverged is one to go back to.
  [[nodiscard]] bool IsHealthy(const EpochResult& row, bool at_chance) const;

 private:
  std::optional<std::string> JudgeUnits(const WorkerProgress& progress);
  std::optional<std::string> JudgeLoss(TimePoint now);
  [[nodiscard]] double FirstLoss() const;
  [[nodiscard]] std::string HighLoss(double loss) const;
  [[nodiscard]] bool IsPoor(const EpochResult& row, bool at_chance) const;
  [[nodiscard]] bool LearnsNothing(const EpochResult& row) const;
  [[nodiscard]] std::optional<std::string> WhyPoor() const;

  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;
  const TrainingMeter& meter_;
  std::optional<TimePoint> far_above_since_;
  DeadUnits most_dead_;  // the largest share that was told last
  std::string grown_layer_;
  double weight_growth_ = 0;  // the largest that was told in this attempt
};

}  // namespace adamant::controller
