#include "operator/core/recovery.h"

#include <algorithm>

#include "operator/core/number_text.h"

namespace adamant::controller {
namespace {

constexpr double kRateOfNextAttempt = 0.5;

constexpr int kDigitsOfRate = 7;

}  // namespace

void KeepFirst(JobState& state) {
  state.recovery.first = state.recovery.healthy = state.checkpoint;
  state.recovery.epoch = state.epoch;
}

void KeepHealthy(JobState& state) {
  Recovery& recovery = state.recovery;
  recovery.healthy = state.checkpoint;
  recovery.epoch = state.epoch + 1;
  recovery.found = true;
  recovery.top1 = state.row.top1;
  recovery.best_top1 = std::max(recovery.best_top1, state.row.top1);
  recovery.healthy_examples = recovery.counted_examples;
}

bool HasCheckpoint(const JobState& state) {
  return state.checkpoint.snapshot != 0 &&
         state.checkpoint.snapshot != state.recovery.first.snapshot;
}

bool MayGoBack(const JobSettings& settings, const JobState& state) {
  return settings.on_divergence.action == OnDivergence::Action::kRecover &&
         state.recovery.healthy.snapshot != 0 &&
         state.recovery.times < settings.on_divergence.times;
}

void TurnBack(JobState& state, std::uint64_t counted) {
  Recovery& recovery = state.recovery;
  if (recovery.attempt > 1 && !recovery.found && recovery.first.snapshot != 0) {
    // The model that it went back to was not as healthy as it seemed.
    recovery.healthy = recovery.first;
    recovery.epoch = 1;
    recovery.healthy_examples = 0;
    recovery.top1 = recovery.best_top1 = 0;
  }
  for (std::size_t i = 0; i < state.histories.size(); ++i) {
    const std::uint64_t kept = recovery.healthy.buckets[i].updates;
    // A snapshot may know more than the last heartbeats.
    const std::uint64_t applied =
        std::max(state.histories[i].updates,
                 i < state.checkpoint.buckets.size() ? state.checkpoint.buckets[i].updates : 0);
    recovery.undone_updates += applied - std::min(applied, kept);
    state.histories[i].updates = kept;  // what is undone on purpose is not lost
  }
  recovery.undone_examples += recovery.counted_examples + counted - recovery.healthy_examples;
  recovery.counted_examples = recovery.healthy_examples;
  recovery.found = false;
  recovery.first_loss = 0;
  ++recovery.times;
  ++recovery.attempt;
  recovery.rate_factor *= kRateOfNextAttempt;
  recovery.going_back = true;
  state.phase = Phase::kStarting;
  state.step = Step::kTraining;
  state.epoch = recovery.epoch;
  state.row = {};
  state.epoch_active = std::chrono::milliseconds(0);
  state.checkpoint = recovery.healthy;
  state.evaluated_snapshot = recovery.epoch > 1 ? recovery.healthy.snapshot : 0;
  state.accuracy = recovery.top1;
  state.at_chance = false;
}

std::string RateOf(const JobSettings& settings, const JobState& state) {
  const double factor = state.recovery.rate_factor;
  return settings.rate > 0 ? "learning rate " + NumberText(settings.rate * factor, kDigitsOfRate)
                           : NumberText(factor, kDigitsOfRate) + " times the learning rates";
}

std::string AfterGoingBack(const JobSettings& settings, const JobState& state) {
  const std::uint64_t times = state.recovery.attempt - 1;
  return times == 0 ? ""
                    : "; the job had gone back " + std::to_string(times) +
                          (times == 1 ? " time" : " times") + ", the last attempt was at " +
                          RateOf(settings, state);
}

std::string DivergenceFailure(const JobSettings& settings,
                              const JobState& state,
                              const std::string& found) {
  std::string text = found.substr(0, found.find("; try "));  // a worker says it too
  if (text.find("learning rate") == std::string::npos) {
    text += ", at " + RateOf(settings, state);
  }
  return text + AfterGoingBack(settings, state) +
         "; try a lower spec.optimiser.rate, or a warm-up (spec.optimiser.schedule.warmUp)";
}

}  // namespace adamant::controller
