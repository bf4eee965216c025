#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::parameter_server {

/// Pace at which what is stored is read again, to find what the disk has damaged.
struct ScrubLimits {
  Clock::Duration pass = std::chrono::hours(24);    ///< longest for all of it
  Clock::Duration pause = std::chrono::seconds(1);  ///< longest between two values
};

/// One of the values that are read again.
struct ScrubbedValue {
  std::uint64_t snapshot = 0;  ///< that it is a copy of; 0: what is live
  BucketId bucket = 0;
  std::optional<ShardId> shard;  ///< of the bucket; nullopt: the bucket's records
};

/// Totals of what scrubbing has done since the start.
struct ScrubTotals {
  std::uint64_t bytes = 0;    ///< read and found to be good
  std::uint64_t damaged = 0;  ///< values that could not be read, or were not what was written
};

}  // namespace adamant::parameter_server
