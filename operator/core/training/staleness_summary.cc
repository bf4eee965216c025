#include "operator/core/training/staleness_summary.h"

#include <algorithm>
#include <numeric>

namespace adamant::controller {
namespace {

// The largest value that bucket i of the histogram counts.
std::uint64_t Largest(std::size_t bucket) {
  return bucket == 0 ? 0 : (std::uint64_t{1} << std::min<std::size_t>(bucket, 63)) - 1;
}

std::uint64_t Quantile(const std::vector<std::uint64_t>& counts, double total, double share) {
  double seen = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    seen += static_cast<double>(counts[i]);
    if (seen >= share * total) {
      return Largest(i);
    }
  }
  return 0;
}

}  // namespace

StalenessSummary Summarise(const std::vector<std::uint64_t>& counts) {
  const auto total =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
  if (total == 0) {
    return {};
  }
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto largest = static_cast<double>(Largest(i));
    const double middle = i == 0 ? 0 : (largest + (largest + 1) / 2) / 2;
    sum += middle * static_cast<double>(counts[i]);
  }
  return {.mean = sum / total,
          .p50 = Quantile(counts, total, 0.5),
          .p99 = Quantile(counts, total, 0.99)};
}

}  // namespace adamant::controller
