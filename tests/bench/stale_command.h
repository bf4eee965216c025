#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "services/common/optimiser/optimiser.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace adamant::bench {

/// Times are in steps: what a training thread takes for a batch.
struct StaleOptions {
  std::string net;
  std::string data;
  std::uint32_t workers = 1;
  std::size_t threads = 1;
  std::size_t batch = 32;
  OptimiserKind kind = OptimiserKind::kMomentum;
  OptimiserLocation location = OptimiserLocation::kWorker;
  double rate = 0.02;
  double momentum = 0.9;
  Schedule::Kind schedule = Schedule::Kind::kLinear;  ///< kLinear: to 0 at the end; or kConstant
  std::optional<std::uint64_t> fetch_every = {};      ///< absent: chosen
  std::optional<std::uint64_t> push_every = {};
  bool asynchrony = true;
  std::optional<std::uint64_t> warm_start = {};  ///< batches; absent: as in a job
  double jitter = 0.1;
  double latency = 0.5;
  std::pair<std::uint32_t, double> straggler = {0, 1};  ///< slot, and how much longer it takes
  std::uint64_t epochs = 5;
  std::uint64_t evaluations = 1;  ///< per epoch
  std::uint64_t seed = 1;
};

void AddStale(CLI::App& command, StaleOptions& options);

/// Trains on MNIST with virtual workers (virtual_worker.h) and one real parameter server on a
/// virtual clock, so that gradients are as old as beside so many machines; prints a line of JSON
/// per evaluation. Equal options give equal lines.
///
/// Unlike a job: epochs follow each other without waiting, evaluations take no time and stop
/// nobody, and weights never decay. Examples per second go to standard error.
/// Errors: InvalidArgument when training diverges, as in a job; those of the data and the net.
absl::Status Stale(const StaleOptions& options);

}  // namespace adamant::bench
