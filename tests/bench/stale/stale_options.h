#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "services/common/optimiser/optimiser.h"
#include "tests/bench/stale/pace.h"

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
/// To have the staleness of real machines, measure theirs while the job trains (docs/metrics.md;
/// tests/bench/scaling.py does so, in its row `match`): S, what a step takes: seconds that training
/// threads did not wait (adamant_worker_wait_seconds_total) over adamant_worker_steps_total; E and
/// F, the means of adamant_worker_push_seconds and adamant_worker_fetch_seconds. A fetch is read
/// when it comes, a push takes effect when it is applied, so: `latency` = F / 2 / S, `apply` =
/// (E - F) / S. `bandwidth` only where several workers meet in one link: then bytes a second x S,
/// and what F has of it leaves the latency. `jitter` and
/// `latency_jitter`: 0.1 for machines of their own, 0.5 or more where processes share cores.
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
  double latency_jitter = 0.1;  ///< of each message; without it exchanges keep their order for ever
  double apply = 0;             ///< of a push, by its server, one after the other
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
