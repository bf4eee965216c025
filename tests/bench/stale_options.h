#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "services/common/optimiser/optimiser.h"
#include "tests/bench/pace.h"

namespace adamant::bench {

/// What is said of one worker. Slots count from 0.
struct Straggler {
  std::uint32_t slot = 0;
  double factor = 1;  ///< so many times as long a step takes
};

struct SlotPause {
  std::uint32_t slot = 0;
  Pause pause;
};

/// From `epoch` on (acknowledged, fractions allowed) the job has so many workers.
struct Scaling {
  double epoch = 0;
  std::uint32_t workers = 1;
};

/// A job of virtual workers. Times are in steps: what a training thread takes for a batch.
///
/// To have the staleness of real machines, measure these while one worker of the real job trains,
/// and two (docs/metrics.md): a step takes S = threads x seconds between two values of
/// adamant_worker_steps_total over their difference, without the waits that
/// adamant_worker_wait_seconds_total has; an exchange E = the mean of adamant_worker_push_seconds,
/// and F = that of adamant_worker_fetch_seconds. Then `latency` = (E + F) / 4 / S: each is a way
/// there and back. Where E and F grow with the bytes, `bandwidth` = bytes of a push x S / what the
/// larger net takes longer. `jitter`: the standard deviation of a step's duration, over S, times
/// the root of 3. Processes that share cores have none of these alone: with p processes that
/// train on c < p cores a step takes p / c times as long for each, and jitter is 0.5 or more.
struct StaleOptions {
  std::uint32_t workers = 1;
  std::uint32_t servers = 1;
  std::size_t threads = 1;
  std::size_t batch = 32;
  OptimiserKind kind = OptimiserKind::kMomentum;
  OptimiserLocation location = OptimiserLocation::kWorker;
  double rate = 0.02;
  double momentum = 0.9;
  double weight_decay = 0;
  Schedule::Kind schedule = Schedule::Kind::kLinear;  ///< kLinear: to 0 at the end; or kConstant
  double warm_up = 0;                                 ///< epochs over which the rate rises
  std::optional<std::uint64_t> fetch_every = {};      ///< absent: chosen
  std::optional<std::uint64_t> push_every = {};
  bool asynchrony = true;
  std::optional<std::uint64_t> warm_start = {};  ///< batches; absent: as in a job
  double jitter = 0.1;
  double latency = 0.5;
  double bandwidth = 0;  ///< bytes a step, of each machine's link in each direction; 0: endless
  std::vector<Straggler> stragglers = {};
  std::vector<SlotPause> pauses = {};
  std::vector<Scaling> scalings = {};  ///< by epoch
  std::uint64_t epochs = 5;
  std::uint64_t evaluations = 1;  ///< per epoch
  double target = 0.985;          ///< top-1 whose first time is told
  std::uint64_t seed = 1;
};

/// Workers there are at a time at most.
std::uint32_t MostWorkers(const StaleOptions& options);

/// InvalidArgument for what cannot be or makes no sense, naming the option of `train_bench stale`.
/// `examples`: of an epoch.
absl::Status Check(const StaleOptions& options, std::uint64_t examples);

}  // namespace adamant::bench
