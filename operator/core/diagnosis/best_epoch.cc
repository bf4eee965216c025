#include "operator/core/diagnosis/best_epoch.h"

#include <cmath>
#include <cstdio>

#include "operator/core/diagnosis/advice.h"
#include "operator/core/diagnosis/job_length.h"

namespace adamant::controller {
namespace {

constexpr double kDeviationsWorse = 3;
constexpr double kLeastWorse = 0.02;
constexpr std::uint64_t kFewestCompared = 100;

std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f%%", 100 * share);
  return text;
}

double VarianceOf(double share, std::uint64_t examples) {
  return share * (1 - share) / static_cast<double>(examples);
}

bool IsClearlyWorse(double last, double best, std::uint64_t examples) {
  const double deviation = std::sqrt(VarianceOf(last, examples) + VarianceOf(best, examples));
  return best - last >= kLeastWorse && best - last > kDeviationsWorse * deviation;
}

}  // namespace

void NoteResult(JobState& state, const EpochResult& row) {
  if (row.is_validated() && (state.best_epoch == 0 || row.top1 > state.best_accuracy)) {
    state.best_epoch = row.epoch;
    state.best_accuracy = row.top1;
  }
}

void ForgetUndone(JobState& state) {
  if (state.best_epoch >= state.epoch) {
    state.best_epoch = state.epoch - 1;
    state.best_accuracy = state.accuracy;
  }
}

std::string WorseThanBest(const JobState& state, const EpochResult& last) {
  if (state.best_epoch == 0 || last.validated < kFewestCompared ||
      !IsClearlyWorse(last.top1, state.best_accuracy, last.validated)) {
    return "";
  }
  return "epoch " + std::to_string(state.best_epoch) + " was the best, with top-1 " +
         Percent(state.best_accuracy) + "; the model that is written is that of the last, epoch " +
         std::to_string(last.epoch) + ", with " + Percent(last.top1);
}

std::string TryToEndAtBest(const Hindrances& hindrances) {
  return ": try " +
         std::string(IsTooShort(hindrances.length) ? TryLongerText(hindrances.length) + ", or "
                                                   : "") +
         AboutStart(hindrances) + AboutSwings(hindrances) +
         "a lower spec.optimiser.rate, or one that falls (spec.optimiser.schedule)";
}

}  // namespace adamant::controller
