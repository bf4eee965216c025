#include "operator/core/diagnosis/chance.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "operator/core/diagnosis/advice.h"
#include "operator/core/diagnosis/job_length.h"
#include "operator/core/state/number_text.h"

namespace adamant::controller {
namespace {

constexpr double kDeviations = 3;

constexpr double kHardlyBelow = 0.99;

/// With a larger share of the loss of naming classes at random a model has learned little.
constexpr double kLittleBelow = 0.95;

/// With a smaller share of it a model has learned its training data.
constexpr double kLearned = 0.5;

/// Where the loss says that nothing of it is known in the validation data.
constexpr std::uint64_t kFewestByHeart = 100;

/// Of the job, before its loss says something; of an epoch, or half of what it counted.
constexpr std::uint64_t kFewestTrained = 1'000;

/// The training loss has hardly moved as long as it stays within this share.
constexpr double kHardly = 0.03;

/// With a first loss of so many times that of naming classes at random, weights were wrecked before
/// it was measured.
constexpr double kWrecked = 3;

std::string Digits(double top1) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4f", top1);
  return text;
}

std::string LossText(const EpochResult& row) {
  return "the training loss, " + NumberText(row.training_loss) +
         ", is no better than that of naming classes at random";
}

/// Whether the training loss is still where it began, or where naming classes at random is
/// (`chance_loss`; 0: not known), as at a rate that is far too low.
bool HasHardlyMoved(const EpochResult& last, const Recovery& recovery, double chance_loss) {
  const double first = recovery.first_loss;
  if (!last.is_measured() || first == 0) {
    return false;
  }
  const bool wrecked = chance_loss > 0 && first > kWrecked * chance_loss;
  const double low = chance_loss > 0 ? std::min(first, chance_loss) : first;
  return !wrecked && last.training_loss >= (1 - kHardly) * low &&
         last.training_loss <= (1 + kHardly) * first;
}

/// A loss that has risen, or weights that were wrecked at once, come of a high rate, however few
/// the batches were.
bool HasRisen(const EpochResult& last, const Recovery& recovery, double chance_loss) {
  const double first = recovery.first_loss;
  return first > 0 && ((chance_loss > 0 && first > kWrecked * chance_loss) ||
                       !(last.training_loss <= (1 + kHardly) * std::max(first, chance_loss)));
}

/// Where training diverged the rate was too high, wherever the loss is now.
std::string WhatToTry(const EpochResult& last,
                      const Recovery& recovery,
                      double chance_loss,
                      const Hindrances& hindrances) {
  if (!recovery.divergence.empty()) {
    return TryText(RateAdvice::kLower, hindrances);
  }
  if (HasRisen(last, recovery, chance_loss)) {
    Hindrances others = hindrances;
    others.length = {};
    return TryToLearnText(RateAdvice::kUnknown, others);
  }
  const bool explained =
      hindrances.all_frozen || hindrances.target || IsTooShort(hindrances.length);
  return (HasHardlyMoved(last, recovery, chance_loss)
              ? ", and the loss has hardly moved" + TryToLearnText(RateAdvice::kHigher, hindrances)
              : TryToLearnText(RateAdvice::kUnknown, hindrances)) +
         (explained ? "" : "; if that does not help, labels may not belong to their images");
}

}  // namespace

bool BeatsNaming(const EpochResult& row, double right) {
  const auto validated = static_cast<double>(row.validated);
  const double correct = std::round(row.top1 * validated);
  return correct > right + kDeviations * std::sqrt(right * (1 - right / validated));
}

bool IsAtChance(const EpochResult& row, std::uint64_t most_frequent) {
  return row.validated >= kFewestJudged && most_frequent > 0 &&
         static_cast<double>(most_frequent) <
             kLargestShareJudged * static_cast<double>(row.validated) &&
         !BeatsNaming(row, static_cast<double>(most_frequent));
}

bool HasChanceLoss(const EpochResult& row,
                   std::uint64_t most_frequent,
                   std::uint64_t counted,
                   double chance_loss) {
  if (most_frequent > 0 && BeatsNaming(row, static_cast<double>(most_frequent))) {
    return false;
  }
  const std::uint64_t fewest = std::min(kFewestTrained, row.counted / 2);
  return row.validated < kFewestJudged && row.is_measured() && row.trained >= fewest &&
         counted >= kFewestTrained && chance_loss > 0 &&
         !(row.training_loss < kHardlyBelow * chance_loss);
}

bool IsUselessByHeart(const EpochResult& row, std::uint64_t most_frequent, double chance_loss) {
  return row.validated >= kFewestByHeart && row.validated < kFewestJudged && most_frequent > 0 &&
         !BeatsNaming(row, static_cast<double>(most_frequent)) &&
         !LearnedByHeart(row, chance_loss).empty();
}

std::string ChanceWarning(const EpochResult& row, std::uint64_t most_frequent, double chance_loss) {
  return "epoch " + std::to_string(row.epoch) + ": " +
         (row.validated < kFewestJudged && LearnedByHeart(row, chance_loss).empty()
              ? LossText(row)
              : "top-1 " + Digits(row.top1) +
                    " is no better than naming the most frequent class (" +
                    std::to_string(most_frequent) + " of " + std::to_string(row.validated) + ")");
}

std::string OneClassWarning(const EpochResult& row, std::uint64_t most_frequent) {
  return row.validated < 2 || most_frequent < row.validated
             ? ""
             : "epoch " + std::to_string(row.epoch) + ": all " + std::to_string(row.validated) +
                   " validation examples are of one class: top-1 does not tell whether the model "
                   "knows the others (spec.data.validation)";
}

std::string LearnedLittle(const EpochResult& last,
                          const Recovery& recovery,
                          double chance_loss,
                          const Hindrances& hindrances) {
  if (!last.is_measured() || chance_loss == 0 ||
      !(last.training_loss >= kLittleBelow * chance_loss)) {
    return "";
  }
  return "the model has learned little: the training loss, " + NumberText(last.training_loss) +
         (last.training_loss > chance_loss ? ", is above" : ", is hardly below") +
         " that of naming classes at random, " + NumberText(chance_loss) +
         WhatToTry(last, recovery, chance_loss, hindrances);
}

std::string LearnedByHeart(const EpochResult& last, double chance_loss) {
  if (!last.is_measured() || !last.is_validated() || chance_loss == 0 ||
      !(last.training_loss < kLearned * chance_loss) || !(last.validation_loss > chance_loss)) {
    return "";
  }
  return "the loss on the validation data, " + NumberText(last.validation_loss) +
         ", is above that of naming classes at random, " + NumberText(chance_loss) +
         ", and that on the training data is " + NumberText(last.training_loss) +
         ": labels do not belong to their images, here or there, the two are of different kinds, "
         "or "
         "the training data is known by heart";
}

std::string ChanceFailure(const EpochResult& last,
                          const Recovery& recovery,
                          double chance_loss,
                          const Hindrances& hindrances) {
  const std::string by_heart = LearnedByHeart(last, chance_loss);
  return "training did not learn: " +
         (last.validated < kFewestJudged && by_heart.empty()
              ? LossText(last)
              : "top-1 " + Digits(last.top1) +
                    " is no better than naming the most frequent class") +
         (by_heart.empty() ? WhatToTry(last, recovery, chance_loss, hindrances) : "; " + by_heart);
}

}  // namespace adamant::controller
