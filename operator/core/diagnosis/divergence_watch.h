#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "operator/core/diagnosis/loss_trend.h"
#include "operator/core/diagnosis/training_meter.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"
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

  /// Of a model that learns, weights grow more: this comes of a rate that is too high.
  static constexpr double kFarGrown = 10;

  /// Of the best top-1 so far: a model with less is not healthy; with less than that it has
  /// diverged.
  static constexpr double kHealthyShare = 0.9;
  static constexpr double kFallenShare = 0.5;

  /// Of the rise that is too high (LossTrend::Limit): what is trained after a healthy checkpoint
  /// stays below.
  static constexpr double kHealthyRise = 0.25;

  /// The arguments must outlive this.
  DivergenceWatch(const JobSettings& settings,
                  JobState& state,
                  Outbox& outbox,
                  const TrainingMeter& meter)
      : settings_(settings),
        state_(state),
        outbox_(outbox),
        meter_(meter),
        trend_(settings, state, meter) {}

  /// Another attempt begins.
  void Restart();

  /// A worker has told this, which the meter has taken in.
  std::optional<std::string> OnWorker(const WorkerProgress& progress, TimePoint now);

  /// An epoch has this result; `at_chance` as IsAtChance.
  [[nodiscard]] std::optional<std::string> Judge(const EpochResult& row, bool at_chance) const;

  /// Tells what in weights or units shows too high a rate, for people; "" where nothing does.
  [[nodiscard]] std::string SignOfHighRate() const;

  /// Returns true if the model of a result that has not diverged is one to go back to.
  [[nodiscard]] bool IsHealthy(const EpochResult& row, bool at_chance) const;

  /// A checkpoint within the epoch is stored. Returns the candidate, an earlier one of this epoch,
  /// if that has turned out to be one to go back to: what was trained after it shows no trouble.
  /// Where too little was trained after it to tell, it stays the candidate; else the new one is it.
  std::optional<KeptModel> OnCheckpoint();

  /// The snapshot that may turn out to be one to go back to; 0: there is none.
  [[nodiscard]] std::uint64_t candidate() const {
    return candidate_ ? candidate_->checkpoint.snapshot : 0;
  }

  /// There are no more checkpoints within it.
  void OnEpochClosed() { candidate_.reset(); }

 private:
  std::optional<std::string> JudgeUnits(const WorkerProgress& progress);
  std::optional<std::string> JudgeLoss(TimePoint now);
  [[nodiscard]] std::optional<std::string> JudgeTrend(std::uint64_t periods) const;
  [[nodiscard]] bool HasTrainedSince(const TrainingMeter::Totals& begin) const;
  [[nodiscard]] bool HasLearnedSince(const TrainingMeter::Totals& begin) const;
  [[nodiscard]] double FirstLoss() const;
  [[nodiscard]] std::string HighLoss(double loss) const;
  [[nodiscard]] bool IsPoor(const EpochResult& row, bool at_chance) const;
  [[nodiscard]] bool LearnsNothing(const EpochResult& row) const;
  [[nodiscard]] std::optional<std::string> WhyPoor() const;
  [[nodiscard]] std::optional<std::string> SignOf(double most_grown) const;

  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;
  const TrainingMeter& meter_;
  LossTrend trend_;
  std::optional<KeptModel> candidate_;    // a checkpoint within this epoch
  TrainingMeter::Totals candidate_from_;  // what had been trained then
  std::optional<TimePoint> far_above_since_;
  DeadUnits most_dead_;  // the largest share that was told last
  std::string grown_layer_;
  double weight_growth_ = 0;  // the largest that was told in this attempt
};

}  // namespace adamant::controller
