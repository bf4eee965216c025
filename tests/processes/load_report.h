#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "services/common/base/ids.h"
#include "tests/processes/commit_times.h"
#include "tests/processes/load_book.h"

namespace adamant::processes {

/// A server lacked acknowledged updates of a shard.
struct Rollback {
  BucketId bucket = 0;
  CommitTimes::TimePoint oldest;  ///< acknowledgement of the first of them
};

/// What a load has found.
struct LoadReport {
  LoadBook::Counts counts;
  const CommitTimes& times;
  std::uint64_t reads = 0;
  std::vector<Rollback> rollbacks{};
  std::vector<std::string> stale_reads{};  ///< that lack an update acknowledged before them
  std::vector<std::string> violations{};
};

/// Writes `progress.json` or `report.json` in `folder`; times are seconds of CLOCK_MONOTONIC. A
/// failure is logged.
void WriteProgress(const std::filesystem::path& folder,
                   const LoadBook::Counts& counts,
                   const std::map<std::string, std::uint64_t>& answers,
                   const CommitTimes& times);
void WriteReport(const std::filesystem::path& folder, const LoadReport& report);

}  // namespace adamant::processes
