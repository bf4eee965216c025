#pragma once

#include <cstdint>
#include <vector>

namespace adamant::controller {

/// Mean and quantiles of a histogram of powers of two (WorkerProgress::update_staleness_counts and
/// batches_of_others). Within a bucket values count as its middle; quantiles are the largest value
/// of the bucket they fall into. All 0 of an empty histogram.
struct StalenessSummary {
  double mean = 0;
  std::uint64_t p50 = 0;
  std::uint64_t p99 = 0;
};
StalenessSummary Summarise(const std::vector<std::uint64_t>& counts);

}  // namespace adamant::controller
