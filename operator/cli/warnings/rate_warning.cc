#include "operator/cli/warnings/rate_warning.h"

#include <algorithm>
#include <cmath>

#include "operator/cli/console/text.h"
#include "operator/core/diagnosis/advice.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::cli {
namespace {

// Measured: docs/bench/scaling.md, "Rates that are too high or too low". What moves weights in the
// long run is rate / (1 - momentum). These are of batches of 32; what larger ones bear is taken to
// go with the root of their size, as the noise of their gradients does; smaller ones bear less.
constexpr double kMostMove = 0.8;
constexpr double kMostAdagrad = 0.08;
constexpr double kMeasuredBatch = 32;
constexpr double kMostMemory = 20;  // a longer one is warned of by itself

// Times the batches of the job; of Adagrad, whose steps fall with the root of their number, times
// that root.
constexpr double kLeastMoveInAll = 5;
constexpr double kLeastAdagradInAll = 0.1;

constexpr std::uint64_t kManyBatches = 100'000;  // where their number is not known
constexpr std::uint64_t kFewBatches = 1'600;     // of shorter jobs not the rate is what is low

struct Limits {
  double memory = 1;  // what the rate is multiplied by
  double most = kMostMove;
  double least_in_all = kLeastMoveInAll;
  std::string what = "";  // of which the limits are
};

double OfBatch(double limit, double batch_size) {
  const double share = batch_size / kMeasuredBatch;
  return limit * (share < 1 ? share : std::sqrt(share));
}

Limits LimitsOf(const v1::Optimiser& optimiser) {
  if (optimiser.kind() == v1::Optimiser::KIND_ADAGRAD) {
    return {.most = kMostAdagrad, .least_in_all = kLeastAdagradInAll};
  }
  if (optimiser.kind() == v1::Optimiser::KIND_MOMENTUM && optimiser.momentum() > 0) {
    const double memory = 1 / (1 - optimiser.momentum());
    return {.memory = memory,
            .most = kMostMove * std::max(1.0, memory / kMostMemory),
            .what = "rate / (1 - momentum) is "};
  }
  return {};
}

void WarnOfHigh(const std::string& field,
                double rate,
                const Limits& limits,
                std::vector<std::string>& warnings) {
  const double move = rate * limits.memory;
  if (move > limits.most * (1 + 1e-9)) {  // momentum is no round number
    warnings.push_back(
        Text("%s: %s%.4g; no net was measured to train well above %.2g with such batches: as a "
             "rule training swings or diverges, or ends lower (docs/bench/scaling.md)",
             field.c_str(),
             limits.what.c_str(),
             move,
             limits.most));
  }
}

void WarnOfLow(const v1::Optimiser& optimiser,
               std::uint64_t batches,
               const Limits& limits,
               std::vector<std::string>& warnings) {
  const auto steps =
      static_cast<double>(batches > 0 ? std::max(batches, kFewBatches) : kManyBatches);
  const bool adagrad = optimiser.kind() == v1::Optimiser::KIND_ADAGRAD;
  const double least = limits.least_in_all / limits.memory / (adagrad ? std::sqrt(steps) : steps);
  if (optimiser.rate() < least) {
    warnings.push_back(
        Text("spec.optimiser.rate: with %g the weights hardly move in %s%llu %s, and little is "
             "learned; nets were measured to learn from about %.2g on (docs/bench/scaling.md)",
             optimiser.rate(),
             batches > 0 ? "the job's " : "",
             Wide(batches > 0 ? batches : kManyBatches),
             batches == 1 ? "batch" : "batches",
             least));
  }
}

void WarnOfDecay(const std::string& field, double decay, std::vector<std::string>& warnings) {
  if (decay >= controller::kStrongDecay) {
    warnings.push_back(
        Text("%s: with %g weights are pulled to 0 harder than most nets bear, and they end lower, "
             "at any rate (docs/bench/scaling.md); 0.0001 to 0.001 are usual",
             field.c_str(),
             decay));
  }
}

}  // namespace

std::vector<std::string> RateWarnings(const v1::JobSpec& spec, std::uint64_t batches) {
  const v1::Optimiser& optimiser = spec.optimiser();
  Limits limits = LimitsOf(optimiser);
  limits.most = OfBatch(limits.most, static_cast<double>(spec.data().batch_size()));
  std::vector<std::string> warnings;
  WarnOfHigh("spec.optimiser.rate", optimiser.rate(), limits, warnings);
  for (int i = 0; i < optimiser.layers_size(); ++i) {
    if (optimiser.layers(i).has_rate()) {
      WarnOfHigh(
          Text("spec.optimiser.layers[%d].rate", i), optimiser.layers(i).rate(), limits, warnings);
    }
  }
  WarnOfLow(optimiser, batches, limits, warnings);
  WarnOfDecay("spec.optimiser.weightDecay", optimiser.weight_decay(), warnings);
  for (int i = 0; i < optimiser.layers_size(); ++i) {
    WarnOfDecay(Text("spec.optimiser.layers[%d].weightDecay", i),
                optimiser.layers(i).weight_decay(),
                warnings);
  }
  return warnings;
}

}  // namespace adamant::cli
