#include "services/worker/core/learner/parallel_mode.h"

#include <algorithm>

namespace adamant::worker {
namespace {

// A core of nominal speed (docs/bench/engine.md).
constexpr double kFlopPerNanosecond = 80;
constexpr double kUpdateNanoseconds = 0.25;  // per parameter, its change included
constexpr double kStepNanoseconds = 10e3;    // whatever the net
constexpr double kParametersPerLine = 16;

/// What a line costs that another core has changed; some are on their way at a time.
constexpr double kNearLineNanoseconds = 15;
constexpr double kFarLineNanoseconds = 27;

constexpr double kLargestShare = 0.25;  // of what a batch takes, for lines that others have

}  // namespace

std::string_view ParallelMode::Name() const {
  if (threads == 1) {
    return "OneThread";
  }
  return share_every == 1 ? "Hogwild" : "Accumulate";
}

ParallelMode ChooseParallelMode(const ParallelWork& work, std::optional<double> ping) {
  ParallelMode mode = {.threads = work.threads};
  if (work.threads == 1) {
    return mode;
  }
  const auto parameters = static_cast<double>(work.parameters);
  const double alone = static_cast<double>(work.batch_size) *
                           static_cast<double>(work.flop_per_example) / kFlopPerNanosecond +
                       parameters * kUpdateNanoseconds + kStepNanoseconds;
  const bool near = ping.value_or(0) < kFarPing;
  const double sweep =
      parameters / kParametersPerLine * (near ? kNearLineNanoseconds : kFarLineNanoseconds);
  const auto per_batch = [&] { return sweep / static_cast<double>(mode.share_every); };
  while (per_batch() > kLargestShare * alone && mode.share_every < work.push_every) {
    mode.share_every = std::min(2 * mode.share_every, work.push_every);
  }
  const auto others = static_cast<double>(work.threads - 1);
  return per_batch() >= others * alone ? ParallelMode{} : mode;
}

}  // namespace adamant::worker
