#include "operator/core/diagnosis/reservations.h"

#include <cstddef>
#include <cstdint>

#include "operator/core/diagnosis/best_epoch.h"
#include "operator/core/diagnosis/chance.h"
#include "operator/core/diagnosis/high_rate.h"
#include "operator/core/diagnosis/job_length.h"
#include "operator/core/diagnosis/poor_end.h"
#include "operator/core/state/number_text.h"

namespace adamant::controller {
namespace {

std::string TopOne(const JobState& state) {
  return "top-1 is " + NumberText(state.accuracy) + " after " + std::to_string(state.epoch) +
         (state.epoch == 1 ? " epoch" : " epochs");
}

std::string MissedTarget(const JobSettings& settings, const JobState& state) {
  return settings.target_accuracy && state.accuracy < *settings.target_accuracy
             ? "spec.runPolicy.targetAccuracy, " + NumberText(*settings.target_accuracy) +
                   ", was not reached: " + TopOne(state)
             : "";
}

std::string EndedEarly(const JobSettings& settings, const JobState& state) {
  return settings.target_accuracy && state.accuracy >= *settings.target_accuracy &&
                 state.epoch < settings.epochs
             ? "spec.runPolicy.targetAccuracy, " + NumberText(*settings.target_accuracy) +
                   ", was reached before all " + std::to_string(settings.epochs) +
                   " epochs were trained: " + TopOne(state)
             : "";
}

std::string LittleLearned(const JobSettings& settings,
                          const JobState& state,
                          const Hindrances& hindrances) {
  return state.at_chance
             ? ""  // that ends a job as failed, with words of its own
             : LearnedLittle(state.row, state.recovery, settings.chance_loss, hindrances);
}

// What is to be said of it; "" each where there is nothing.
struct Model {
  std::string worse;
  std::string went_back;
  std::string little;
  std::string by_heart;
  std::string poor;
};

// One advice is enough.
Model Judge(const JobSettings& settings, const JobState& state) {
  const Hindrances hindrances = HindrancesOf(settings, state);
  Model model{.worse = WorseThanBest(state, state.row),
              .went_back = WentBack(settings, state),
              .little = LittleLearned(settings, state, hindrances),
              .by_heart = state.at_chance ? "" : LearnedByHeart(state.row, settings.chance_loss),
              .poor = ""};
  if (!model.worse.empty() && model.little.empty() && !state.at_chance) {
    model.worse += TryToEndAtBest(hindrances);
  }
  const bool advised = !model.worse.empty() || !model.little.empty() || !model.by_heart.empty();
  if (!advised && !state.at_chance) {
    const std::string high = HighRate(settings, state);
    model.poor = high.empty() ? PoorEnd(settings, state) : high;
  }
  return model;
}

// What one had died with nobody counts.
bool HasWorkerEnded(const JobSettings& settings, const JobState& state) {
  const std::size_t first = SlotIndex(settings, {Role::kWorker, 0});
  for (std::size_t i = first; i < state.slots.size(); ++i) {
    if (state.slots[i].incarnation > 1) {
      return true;
    }
  }
  return false;
}

}  // namespace

// Workers count what they could not send again, all but what had died with one of them. The
// controller knows what it had heard of, and of that not what was sent again.
std::string LostWithCopies(const JobSettings& settings, const JobState& state) {
  if (const std::uint64_t lost = state.updates_lost + state.unrecorded_losses; lost > 0) {
    return "at least " + std::to_string(lost) + (lost == 1 ? " update was" : " updates were") +
           " lost with all copies, and their examples count as trained";
  }
  std::uint64_t updates = 0;
  std::uint64_t buckets = 0;
  for (const BucketHistory& history : state.histories) {
    updates += history.rolled_back;
    buckets += history.rolled_back > 0 ? 1 : 0;
  }
  return updates == 0 || !HasWorkerEnded(settings, state)
             ? ""
             : std::to_string(updates) + (updates == 1 ? " update of " : " updates of ") +
                   std::to_string(buckets) + (buckets == 1 ? " bucket" : " buckets") +
                   (updates == 1 ? " was" : " were") +
                   " rolled back with all copies; what no worker sent again of that "
                   "counts as trained";
}

std::string ReservationsOf(const JobSettings& settings, const JobState& state) {
  const Model model = Judge(settings, state);
  std::string all;
  for (const std::string& one : {MissedTarget(settings, state),
                                 model.worse,
                                 model.went_back,
                                 model.little,
                                 model.by_heart,
                                 model.poor,
                                 LostWithCopies(settings, state)}) {
    all += (all.empty() || one.empty() ? "" : "; ") + one;
  }
  return all;
}

EndKind EndOfSuccess(const JobSettings& settings, const JobState& state) {
  const Model model = Judge(settings, state);
  const bool is_poor = !model.went_back.empty() || !model.little.empty() || !model.poor.empty();
  return is_poor ? EndKind::kPoor : !model.worse.empty() ? EndKind::kWorse : EndKind::kOther;
}

std::string ClosingWords(const JobSettings& settings, const JobState& state) {
  const std::string early = EndedEarly(settings, state);
  const std::string reservations = ReservationsOf(settings, state);
  return early + (early.empty() || reservations.empty() ? "" : "; ") + reservations;
}

}  // namespace adamant::controller
