#include "operator/core/diagnosis/job_length.h"

#include <algorithm>
#include <cmath>

namespace adamant::controller {
namespace {

// With these a net has learned much more than little, if the rate is right: docs/operations.md.
constexpr std::uint64_t kFewestBatchesOfThread = 50;

std::string BatchesText(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " batch" : " batches");
}

}  // namespace

JobLength LengthOf(const JobSettings& settings, const JobState& state) {
  const auto examples = static_cast<double>(TrainingExamples(settings, state));
  if (settings.batch_size == 0 || examples == 0) {
    return {};
  }
  const auto batch_size = static_cast<double>(settings.batch_size);
  const auto of_epoch = static_cast<std::uint64_t>(std::ceil(examples / batch_size));
  const double share = settings.warm_up_epochs + settings.warm_up_examples / examples;
  const double completed = settings.epoch_completion * static_cast<double>(of_epoch);
  const std::uint64_t batches = static_cast<std::uint64_t>(std::ceil(completed)) * state.row.epoch;
  return {
      .batches = batches,
      .warm_up = static_cast<std::uint64_t>(std::clamp(
          std::round(share * static_cast<double>(of_epoch)), 0.0, static_cast<double>(batches))),
      .batch_size = settings.batch_size,
      .threads = std::uint64_t{settings.workers} * settings.threads_per_worker};
}

Hindrances HindrancesOf(const JobSettings& settings, const JobState& state) {
  Hindrances found = settings.hindrances;
  found.length = LengthOf(settings, state);
  if (settings.target_accuracy && state.row.top1 >= *settings.target_accuracy &&
      state.row.epoch < settings.epochs) {
    found.target = settings.target_accuracy;
  }
  return found;
}

bool IsTooShort(const JobLength& length) {
  return length.batches > 0 &&
         length.batches - length.warm_up < kFewestBatchesOfThread * length.threads;
}

std::string ShortText(const JobLength& length) {
  return "the job has only " + BatchesText(length.batches) + " in all" +
         (length.threads > 1 ? " for " + std::to_string(length.threads) + " training threads"
                             : "") +
         (length.warm_up > 0 ? ", " + std::to_string(length.warm_up) + " of them in its warm-up"
                             : "");
}

std::string TryLongerText(const JobLength& length) {
  return std::string("more epochs (spec.runPolicy.epochs)") +
         (length.batch_size > 1 ? ", smaller batches (spec.data.batchSize)" : "") +
         (length.warm_up > 0 ? ", a shorter warm-up (spec.optimiser.schedule.warmUp)" : "") +
         (length.threads > 1 ? ", fewer workers" : "");
}

}  // namespace adamant::controller
