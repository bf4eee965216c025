#include "tests/bench/stale/stale_options.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "services/common/base/status_macros.h"

namespace adamant::bench {
namespace {

constexpr double kMostSteps = 1e6;

absl::Status Wrong(const std::string& option, const std::string& why) {
  return absl::InvalidArgumentError("--" + option + ": " + why);
}

std::string Text(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  return text.ends_with('.') ? text.substr(0, text.size() - 1) : text;
}

absl::Status CheckRange(const std::string& option, double value, double least, double most) {
  return value >= least && value <= most
             ? absl::OkStatus()
             : Wrong(option, Text(value) + " is not in " + Text(least) + " to " + Text(most));
}

absl::Status CheckSlot(const std::string& option, std::uint32_t slot, const StaleOptions& options) {
  const std::uint32_t workers = MostWorkers(options);
  return slot < workers ? absl::OkStatus()
                        : Wrong(option,
                                "there is no worker " + std::to_string(slot) + ", only 0 to " +
                                    std::to_string(workers - 1));
}

absl::Status CheckPaces(const StaleOptions& options) {
  for (const Straggler& straggler : options.stragglers) {
    ADAMANT_RETURN_IF_ERROR(CheckSlot("straggler", straggler.slot, options));
    ADAMANT_RETURN_IF_ERROR(CheckRange("straggler", straggler.factor, 1e-3, 1e3));
  }
  for (const SlotPause& each : options.pauses) {
    ADAMANT_RETURN_IF_ERROR(CheckSlot("pause", each.slot, options));
    ADAMANT_RETURN_IF_ERROR(CheckRange("pause", each.pause.every, 1e-3, kMostSteps));
    if (!(each.pause.lasts > 0 && each.pause.lasts < each.pause.every)) {
      return Wrong("pause",
                   "it stands still for more than 0 and less than all of every " +
                       Text(each.pause.every) + " steps, not for " + Text(each.pause.lasts));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckScalings(const StaleOptions& options) {
  double before = 0;
  for (const Scaling& scaling : options.scalings) {
    ADAMANT_RETURN_IF_ERROR(
        CheckRange("scale", scaling.epoch, before, static_cast<double>(options.epochs)));
    ADAMANT_RETURN_IF_ERROR(CheckRange("scale", scaling.workers, 1, 1024));
    before = scaling.epoch;
  }
  return absl::OkStatus();
}

absl::Status CheckRule(const StaleOptions& options) {
  ADAMANT_RETURN_IF_ERROR(CheckRange("rate", options.rate, 0, 1e6));
  ADAMANT_RETURN_IF_ERROR(CheckRange("weight-decay", options.weight_decay, 0, 1));
  ADAMANT_RETURN_IF_ERROR(
      CheckRange("warm-up", options.warm_up, 0, static_cast<double>(options.epochs)));
  if (options.kind == OptimiserKind::kAdagrad && options.location == OptimiserLocation::kWorker) {
    return Wrong("kind", "Adagrad runs on the servers: add --location Server");
  }
  return absl::OkStatus();
}

}  // namespace

std::uint32_t MostWorkers(const StaleOptions& options) {
  std::uint32_t most = options.workers;
  for (const Scaling& scaling : options.scalings) {
    most = std::max(most, scaling.workers);
  }
  return most;
}

absl::Status Check(const StaleOptions& options, std::uint64_t examples) {
  ADAMANT_RETURN_IF_ERROR(CheckRule(options));
  ADAMANT_RETURN_IF_ERROR(CheckPaces(options));
  ADAMANT_RETURN_IF_ERROR(CheckScalings(options));
  ADAMANT_RETURN_IF_ERROR(CheckRange("latency", options.latency, 0, kMostSteps));
  ADAMANT_RETURN_IF_ERROR(CheckRange("apply", options.apply, 0, kMostSteps));
  ADAMANT_RETURN_IF_ERROR(CheckRange("bandwidth", options.bandwidth, 0, 1e15));
  ADAMANT_RETURN_IF_ERROR(
      CheckRange("batch", static_cast<double>(options.batch), 1, static_cast<double>(examples)));
  const std::uint64_t batches = (examples + options.batch - 1) / options.batch;
  if (options.warm_start.value_or(0) > options.epochs * batches) {
    return Wrong("warm-start",
                 "the job has " + std::to_string(options.epochs * batches) + " batches, not " +
                     std::to_string(*options.warm_start));
  }
  if (options.evaluations > batches) {
    return Wrong("evaluations",
                 "an epoch has " + std::to_string(batches) + " batches, and is not evaluated " +
                     std::to_string(options.evaluations) + " times");
  }
  return absl::OkStatus();
}

}  // namespace adamant::bench
