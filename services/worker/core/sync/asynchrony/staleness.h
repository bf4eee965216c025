#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace adamant::worker {

/// Histogram of staleness, whose unit its user says: batches of other workers, or updates of a
/// shard. Threads: one at a time.
class StalenessHistogram {
 public:
  static constexpr std::size_t kBuckets = 24;

  void Add(std::uint64_t staleness) {
    const auto bucket = static_cast<std::size_t>(std::bit_width(staleness));
    ++counts_[std::min(bucket, kBuckets - 1)];
  }

  /// Bucket 0 counts 0, bucket i counts 2^(i-1) to 2^i - 1; the last also what is larger.
  [[nodiscard]] const std::array<std::uint64_t, kBuckets>& counts() const { return counts_; }

 private:
  std::array<std::uint64_t, kBuckets> counts_{};
};

}  // namespace adamant::worker
