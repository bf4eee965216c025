#include "operator/core/diagnosis/recovery.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "operator/core/diagnosis/advice.h"
#include "operator/core/diagnosis/best_epoch.h"
#include "operator/core/state/number_text.h"

namespace adamant::controller {
namespace {

constexpr int kDigitsOfRate = 7;

// Those that are stored, or else new ones.
void TakeFirst(JobState& state) {
  Recovery& recovery = state.recovery;
  if (recovery.first.snapshot == 0) {
    recovery.first = {.snapshot = ++state.last_snapshot, .epoch = 1};
  }
  recovery.healthy = {.checkpoint = recovery.first, .epoch = 1};
  recovery.older = {};
  recovery.best_top1 = 0;
}

// By going back to buckets that were kept; what is undone is not lost.
void UndoUpdatesBehind(const std::vector<CheckpointBucket>& kept, JobState& state) {
  for (std::size_t i = 0; i < state.histories.size(); ++i) {
    const std::uint64_t stays = i < kept.size() ? kept[i].updates : 0;
    // A snapshot may know more than the last heartbeats.
    const std::uint64_t applied =
        std::max(state.histories[i].updates,
                 i < state.checkpoint.buckets.size() ? state.checkpoint.buckets[i].updates : 0);
    state.recovery.undone_updates += applied - std::min(applied, stays);
    state.histories[i].updates = stays;
  }
}

// The time that it took to count those of `examples` that are undone.
void TakeProductive(JobState& state, std::uint64_t undone, std::uint64_t examples) {
  if (examples > 0) {
    const double share = static_cast<double>(undone) / static_cast<double>(examples);
    state.productive -=
        std::chrono::duration_cast<std::chrono::milliseconds>(state.productive * share);
  }
}

void CountUndone(JobState& state, const KeptModel& model, std::uint64_t counted) {
  UndoUpdatesBehind(model.checkpoint.buckets, state);
  Recovery& recovery = state.recovery;
  const std::uint64_t examples = recovery.counted_examples + counted;
  const std::uint64_t undone = examples - std::min(examples, model.examples + model.counted);
  recovery.undone_examples += undone;
  TakeProductive(state, undone, examples);
  recovery.counted_examples = model.examples;
}

void Become(JobState& state, const KeptModel& model) {
  const bool made_anew = model.checkpoint.buckets.empty();
  state.recovery.best_loss = model.best_loss;
  state.recovery.going_back = true;
  state.phase = Phase::kStarting;
  state.step = made_anew ? Step::kFirstWeights : Step::kTraining;
  state.epoch = model.epoch;
  state.row = {};
  state.totals = {};
  state.rolled_back = {};
  state.earlier_loss = 0;
  state.epoch_active = std::chrono::milliseconds(0);
  state.checkpoint = model.checkpoint;
  state.evaluated_snapshot = model.evaluated;
  state.accuracy = model.top1;
  state.at_chance = false;
  ForgetUndone(state);
}

void BecomeHealthy(JobState& state, std::uint64_t counted) {
  const KeptModel model = state.recovery.healthy;
  CountUndone(state, model, counted);
  Become(state, model);
  state.recovery.newest = model;
}

// What a user had it go back for says nothing of a next time.
bool HasGoneBackByItself(const JobSettings& settings, const JobState& state) {
  return settings.on_divergence.action == OnDivergence::Action::kRecover &&
         state.recovery.attempt > 1;
}

}  // namespace

void KeepFirst(JobState& state) {
  state.recovery.first = state.checkpoint;
  TakeFirst(state);
  KeepNewest(state, 1, 0);
}

void KeepNewest(JobState& state, DataEpoch epoch, std::uint64_t counted) {
  state.recovery.newest = ModelOf(state, epoch, counted);
}

KeptModel ModelOf(const JobState& state, DataEpoch epoch, std::uint64_t counted) {
  return {.checkpoint = state.checkpoint,
          .epoch = epoch,
          .top1 = state.accuracy,
          .evaluated = state.evaluated_snapshot,
          .examples = state.recovery.counted_examples,
          .counted = counted,
          .best_loss = state.recovery.best_loss};
}

void KeepHealthy(JobState& state, KeptModel model) {
  Recovery& recovery = state.recovery;
  if (recovery.healthy.checkpoint.snapshot != recovery.first.snapshot) {
    recovery.older = std::move(recovery.healthy);
  }
  recovery.healthy = std::move(model);
  recovery.found = true;
}

bool HasCheckpoint(const JobState& state) {
  return state.checkpoint.snapshot != 0 &&
         state.checkpoint.snapshot != state.recovery.first.snapshot;
}

bool EndedWithCheckpoint(const JobState& state) {
  return state.row.snapshot != 0 && state.row.snapshot == state.checkpoint.snapshot;
}

std::string CheckpointName(const JobState& state) {
  return HasCheckpoint(state) ? "checkpoint " + std::to_string(state.checkpoint.snapshot)
                              : "the first weights";
}

WriteManifest ManifestOf(const JobState& state) {
  return {.checkpoint = HasCheckpoint(state) ? state.checkpoint : Checkpoint(),
          .keep = state.evaluated_snapshot};
}

bool MayGoBack(const JobSettings& settings, const JobState& state) {
  return settings.on_divergence.action == OnDivergence::Action::kRecover &&
         state.recovery.times < settings.on_divergence.times;
}

void TurnBack(JobState& state, std::uint64_t counted, double rate_factor) {
  Recovery& recovery = state.recovery;
  const bool any = recovery.healthy.checkpoint.snapshot != 0;
  if (!any || (recovery.attempt > 1 && !recovery.found)) {
    TakeFirst(state);  // the model that it went back to was not as healthy as it seemed
  }
  recovery.found = false;
  recovery.first_loss = 0;
  recovery.sign.clear();
  ++recovery.times;
  ++recovery.attempt;
  recovery.rate_factor *= rate_factor;
  for (LayerRate& own : recovery.layer_rates) {
    own.factor *= rate_factor;
  }
  BecomeHealthy(state, counted);
}

void TakeRates(const JobSettings& settings, JobState& state) {
  Recovery& recovery = state.recovery;
  const bool known = recovery.rate != 0;  // else those of now are taken for those of then
  bool changed = known && recovery.rate != settings.rate;
  if (changed) {
    recovery.rate_factor = 1;
  }
  std::vector<LayerRate> taken;
  for (const auto& [layer, rate] : settings.layer_rates) {
    const auto before = std::ranges::find(recovery.layer_rates, layer, &LayerRate::layer);
    const bool same = before != recovery.layer_rates.end() && before->rate == rate;
    taken.push_back({.layer = layer, .rate = rate, .factor = 1});
    if (!known) {
      taken.back().factor = recovery.rate_factor;
    } else if (same) {
      taken.back().factor = before->factor;
    } else {
      changed = true;
    }
  }
  if (changed) {
    recovery.times = 0;
  }
  recovery.rate = settings.rate;
  recovery.layer_rates = std::move(taken);
}

std::map<std::string, double> LayerFactors(const Recovery& recovery) {
  std::map<std::string, double> factors;
  for (const LayerRate& own : recovery.layer_rates) {
    factors[own.layer] = own.factor;
  }
  return factors;
}

bool ReturnToCheckpoint(JobState& state, std::uint64_t counted) {
  KeptModel model = state.recovery.newest;
  const bool any = !state.checkpoint.buckets.empty();
  if (any && model.checkpoint.snapshot != state.checkpoint.snapshot) {
    return false;
  }
  model.checkpoint = state.checkpoint;  // other servers may have stored it since
  ++state.recovery.attempt;
  if (!any) {
    TakeFirst(state);
    BecomeHealthy(state, counted);
  } else if (state.row.snapshot == model.checkpoint.snapshot) {  // nothing was trained since
    state.recovery.going_back = true;
    state.phase = Phase::kStarting;
  } else {
    CountUndone(state, model, counted);
    Become(state, model);
  }
  return true;
}

void UndoUpdates(JobState& state) {
  UndoUpdatesBehind(state.checkpoint.buckets, state);
  state.rolled_back = {};
}

bool FallBack(JobState& state) {
  Recovery& recovery = state.recovery;
  const KeptModel lost = recovery.healthy;
  if (state.checkpoint.snapshot != lost.checkpoint.snapshot) {
    if (lost.checkpoint.snapshot == 0) {
      TakeFirst(state);
    }
    BecomeHealthy(state, recovery.newest.counted);
    return true;
  }
  if (lost.checkpoint.buckets.empty()) {
    return false;
  }
  if (recovery.older.checkpoint.snapshot != 0) {
    recovery.healthy = std::exchange(recovery.older, {});
    recovery.best_top1 = recovery.healthy.top1;  // the better one is lost
  } else {
    if (recovery.first.snapshot == lost.checkpoint.snapshot) {
      recovery.first = {};
    }
    TakeFirst(state);
  }
  BecomeHealthy(state, lost.counted);
  return true;
}

std::string WhereTo(const JobState& state) {
  const KeptModel& model = state.recovery.newest;
  const std::string name = " (checkpoint " + std::to_string(model.checkpoint.snapshot) + ")";
  if (model.checkpoint.buckets.empty()) {
    return "its first weights, made anew,";
  }
  if (model.checkpoint.snapshot == state.recovery.first.snapshot) {
    return "its first weights" + name;
  }
  return model.checkpoint.epoch == model.epoch
             ? "the model within epoch " + std::to_string(model.epoch) + name
             : "the model of epoch " + std::to_string(model.checkpoint.epoch) + name;
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
  return text + (HasGoneBackByItself(settings, state) ? AfterGoingBack(settings, state) : "") +
         TryText(RateAdvice::kLower, settings.hindrances);
}

EndKind EndOfDivergence(const JobSettings& settings, const JobState& state) {
  return HasGoneBackByItself(settings, state) ? EndKind::kDivergedAgain : EndKind::kDiverged;
}

}  // namespace adamant::controller
