#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::processes {

/// When updates were acknowledged: how long each took, and for how long a bucket had none.
/// Threads: one.
class CommitTimes {
 public:
  /// Of CLOCK_MONOTONIC, which all processes of a machine share (Python: time.monotonic()).
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Gap {
    BucketId bucket = 0;
    TimePoint from;  ///< last acknowledgement before
    TimePoint to;    ///< first one after
  };

  /// Gaps of at least `shortest_gap` are kept.
  explicit CommitTimes(std::chrono::milliseconds shortest_gap) : shortest_gap_(shortest_gap) {}

  void OnAcknowledged(BucketId bucket, TimePoint begun, TimePoint now);

  [[nodiscard]] const std::vector<Gap>& gaps() const { return gaps_; }

  /// By bucket that had any: the last acknowledgement.
  [[nodiscard]] const std::map<BucketId, TimePoint>& last() const { return last_; }

  /// The time within which this share of the updates was acknowledged, of the last million.
  [[nodiscard]] std::chrono::microseconds Quantile(double share) const;

 private:
  const std::chrono::milliseconds shortest_gap_;
  std::map<BucketId, TimePoint> last_;
  std::vector<Gap> gaps_;
  std::vector<std::chrono::microseconds> latencies_;
  std::size_t next_latency_ = 0;  // the oldest, once there are a million
};

}  // namespace adamant::processes
