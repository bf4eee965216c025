#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/bench/stale/stale_job.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace adamant::bench {

struct StaleCommand {
  std::string net;                           ///< a reference net's name, or a job's file
  std::string data;                          ///< folder with MNIST's files
  StaleOptions options;                      ///< but for what follows
  std::vector<std::string> stragglers = {};  ///< "SLOT:FACTOR"
  std::vector<std::string> pauses = {};      ///< "SLOT:EVERY:FOR"
  std::vector<std::string> scalings = {};    ///< "EPOCH:WORKERS"
};

void AddStale(CLI::App& command, StaleCommand& stale);

/// Runs a job of virtual workers (StaleJob) and prints its lines. Examples per second go to
/// standard error. Errors: as StaleJob::Run; those of the data and the net.
absl::Status Stale(const StaleCommand& command);

}  // namespace adamant::bench
