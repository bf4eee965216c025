#pragma once

#include <chrono>
#include <cstdint>

#include "services/common/protocol/persistence_mode.h"

namespace adamant::v1 {
class TrainingJob;
}

namespace adamant::job {

using protocol::PersistenceMode;

/// Settings for how the parameters of a job are kept: spec.distribution.parameterServers.
struct Replication {
  std::uint32_t copies = 1;       ///< servers that hold each bucket
  std::uint32_t min_in_sync = 1;  ///< copies below which no update is taken; at most `copies`
  std::chrono::nanoseconds beacon{0};
  std::chrono::nanoseconds lease{0};  ///< at least three times `beacon`
  std::chrono::nanoseconds grace{0};  ///< at least `lease` x 1.1 / 0.9
  PersistenceMode mode = PersistenceMode::kDelayed;
  std::chrono::nanoseconds flush_interval{
      0};                          ///< the loss window; mode kNone: 0, nothing is flushed
  std::uint64_t flush_bytes = 0;   ///< mode kNone: 0
  std::uint64_t retain_bytes = 0;  ///< per worker; mode kNone: 0
};

/// Reads a job that came from LoadJob or ParseJob.
Replication ReplicationOf(const v1::TrainingJob& job);

}  // namespace adamant::job
