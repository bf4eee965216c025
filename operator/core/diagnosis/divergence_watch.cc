#include "operator/core/diagnosis/divergence_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "operator/core/diagnosis/chance.h"
#include "operator/core/diagnosis/recovery.h"
#include "operator/core/state/number_text.h"

namespace adamant::controller {
namespace {

double ShareOf(const DeadUnits& layer) {
  return layer.units > 0 ? static_cast<double>(layer.dead) / static_cast<double>(layer.units) : 0;
}

}  // namespace

void DivergenceWatch::Restart() {
  trend_.Restart();
  candidate_.reset();
  far_above_since_.reset();
  most_dead_ = {};
  grown_layer_.clear();
  weight_growth_ = 0;
}

std::optional<std::string> DivergenceWatch::OnWorker(const WorkerProgress& progress,
                                                     TimePoint now) {
  double& first = state_.recovery.first_loss;
  if (const TrainingMeter::Totals all = meter_.OverAllEpochs();
      first == 0 && all.trained >= kFirstExamples) {
    first = all.MeanLossSince({});
    outbox_.StateChanged();
  }
  if (!(progress.weight_growth <= weight_growth_)) {
    weight_growth_ = progress.weight_growth;
    grown_layer_ = progress.grown_layer;
  }
  trend_.OnMeter(FirstLoss());
  std::optional<std::string> found = JudgeUnits(progress);
  if (!found) {
    found = JudgeLoss(now);
  }
  return found ? found : JudgeTrend(LossTrend::kPeriods);
}

// Below a layer that is dead no unit gets a gradient: the last one is the cause.
std::optional<std::string> DivergenceWatch::JudgeUnits(const WorkerProgress& progress) {
  const DeadUnits* dead = nullptr;
  DeadUnits most;
  for (const DeadUnits& layer : progress.dead_units) {
    if (layer.units > 0 && layer.dead >= layer.units) {
      dead = &layer;
    }
    if (ShareOf(layer) > ShareOf(most)) {
      most = layer;
    }
  }
  if (!progress.dead_units.empty()) {
    most_dead_ = most;
  }
  if (dead == nullptr) {
    return std::nullopt;
  }
  return dead->units == 1 ? "the unit of layer " + dead->layer + " is dead"
                          : "all " + std::to_string(dead->units) + " units of layer " +
                                dead->layer + " are dead";
}

// Of an attempt whose weights are wrecked within its first batches the first loss says little, and
// that of a model that knows nothing bounds it.
double DivergenceWatch::FirstLoss() const {
  const double first = state_.recovery.first_loss;
  const double chance = settings_.chance_loss;
  return chance > 0 && first > 0 ? std::clamp(first, chance, kFarAbove * chance)
                                 : std::max(first, chance);
}

std::string DivergenceWatch::HighLoss(double loss) const {
  const double first = state_.recovery.first_loss;
  return "the training loss is " + NumberText(loss) +
         (first == FirstLoss()
              ? ", it began with " + NumberText(first)
              : ", that of a model that knows nothing is " + NumberText(settings_.chance_loss));
}

std::optional<std::string> DivergenceWatch::JudgeLoss(TimePoint now) {
  const double loss = meter_.RecentLoss();
  if (FirstLoss() == 0 || loss <= kFarAbove * FirstLoss()) {
    far_above_since_.reset();
    return std::nullopt;
  }
  if (!far_above_since_) {
    far_above_since_ = now;
  }
  return now < *far_above_since_ + kLong ? std::nullopt : std::optional(HighLoss(loss));
}

std::optional<std::string> DivergenceWatch::JudgeTrend(std::uint64_t periods) const {
  return trend_.high_periods() < periods ? std::nullopt
                                         : std::optional("the training loss has risen from " +
                                                         NumberText(state_.recovery.best_loss) +
                                                         " to " + NumberText(trend_.last()));
}

// By the validation data, or where there is too little of it by the training loss.
bool DivergenceWatch::IsPoor(const EpochResult& row, bool at_chance) const {
  return at_chance || (row.validated < kFewestJudged && row.is_measured() &&
                       settings_.chance_loss > 0 && row.training_loss > settings_.chance_loss);
}

bool DivergenceWatch::LearnsNothing(const EpochResult& row) const {
  return !row.is_measured() || row.training_loss > kHardlyLess * settings_.chance_loss;
}

std::optional<std::string> DivergenceWatch::Judge(const EpochResult& row, bool at_chance) const {
  if (row.is_validated() && !std::isfinite(row.validation_loss)) {
    return "the validation loss is not finite";
  }
  if (row.is_measured() && FirstLoss() > 0 && row.training_loss > kFarAbove * FirstLoss()) {
    return HighLoss(row.training_loss);
  }
  const double best = state_.recovery.best_top1;
  if (row.validated >= kFewestJudged && row.top1 < kFallenShare * best) {
    return "top-1 has fallen from " + NumberText(best) + " to " + NumberText(row.top1);
  }
  const bool worse = row.validated < kFewestJudged || best == 0 || row.top1 < kHealthyShare * best;
  if (auto risen = JudgeTrend(LossTrend::kPeriods / 2); risen && worse) {
    return risen;
  }
  const std::optional<std::string> why =
      IsPoor(row, at_chance) && LearnsNothing(row) ? WhyPoor() : std::nullopt;
  if (!why) {
    return std::nullopt;
  }
  return (row.validated >= kFewestJudged
              ? "top-1 " + NumberText(row.top1) +
                    " is no better than naming the most frequent class"
              : "the training loss, " + NumberText(row.training_loss) +
                    ", is no better than that of naming classes at random") +
         ", and " + *why;
}

// What a model that is merely slow does not show.
std::optional<std::string> DivergenceWatch::WhyPoor() const {
  if (const double best = state_.recovery.best_top1; best > 0) {
    return "top-1 was " + NumberText(best);
  }
  return SignOf(kMostGrown);
}

std::optional<std::string> DivergenceWatch::SignOf(double most_grown) const {
  if (ShareOf(most_dead_) >= kMostDead) {
    return std::to_string(most_dead_.dead) + " of the " + std::to_string(most_dead_.units) +
           " units of layer " + most_dead_.layer + " are dead";
  }
  if (!(weight_growth_ < most_grown)) {
    return "the weights of layer " + grown_layer_ + " have grown to " + NumberText(weight_growth_) +
           " times what they were";
  }
  return std::nullopt;
}

std::string DivergenceWatch::SignOfHighRate() const { return SignOf(kFarGrown).value_or(""); }

bool DivergenceWatch::IsHealthy(const EpochResult& row, bool at_chance) const {
  return row.is_validated() && !IsPoor(row, at_chance) && ShareOf(most_dead_) < kMostDead &&
         trend_.high_periods() == 0 &&
         (row.validated < kFewestJudged || row.top1 >= kHealthyShare * state_.recovery.best_top1);
}

std::optional<KeptModel> DivergenceWatch::OnCheckpoint() {
  if (candidate_ && !HasTrainedSince(candidate_from_)) {
    return std::nullopt;
  }
  std::optional<KeptModel> last =
      std::exchange(candidate_, ModelOf(state_, state_.epoch, meter_.counted()));
  const TrainingMeter::Totals begin = std::exchange(candidate_from_, meter_.watched());
  return HasLearnedSince(begin) ? last : std::nullopt;
}

bool DivergenceWatch::HasTrainedSince(const TrainingMeter::Totals& begin) const {
  const std::uint64_t fewest =
      std::min(kFirstExamples, TrainingExamples(settings_, state_) / LossTrend::kPeriods);
  return meter_.watched().trained >= begin.trained + std::max<std::uint64_t>(fewest, 1);
}

bool DivergenceWatch::HasLearnedSince(const TrainingMeter::Totals& begin) const {
  const TrainingMeter::Totals& now = meter_.watched();
  const double nothing = settings_.chance_loss > 0 ? settings_.chance_loss : FirstLoss();
  const double limit = trend_.Limit(FirstLoss(), kHealthyRise);
  const double loss = now.MeanLossSince(begin);
  return HasTrainedSince(begin) && loss < kHardlyLess * nothing && (limit == 0 || loss <= limit) &&
         trend_.high_periods() == 0 && !far_above_since_ && ShareOf(most_dead_) < kMostDead;
}

}  // namespace adamant::controller
