#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/storage/kv_store.h"
#include "services/parameter_server/core/shards/dirty_shards.h"
#include "services/parameter_server/core/shards/shard_table.h"

namespace adamant::parameter_server {

/// Totals of what flushes have done since the start.
struct FlushTotals {
  std::uint64_t flushes = 0;  ///< that succeeded
  std::uint64_t bytes = 0;    ///< written by them
  std::uint64_t folded = 0;   ///< updates that needed no write of their own
};

/// Writes dirty shards back to the store. The driver calls Flush when DueAt has come.
/// Threads: Flush one at a time; the others any.
class Flusher {
 public:
  /// All must outlive this.
  Flusher(const ShardTable& shards,
          DirtyShards& dirty,
          storage::KvStore& store,
          const Clock& clock);

  /// Returns when the next flush should begin; TimePoint::max() if nothing is dirty.
  [[nodiscard]] Clock::TimePoint DueAt() const;

  /// Writes what is dirty; on success it is durable. While the disk is full nothing is written or
  /// lost: that raises the alarm, returns OK, and is tried again a second later.
  /// Errors: all others of the store; what is on disk is then unknown, so the process must end and
  /// load it anew.
  absl::Status Flush();

  /// Of DescribeFull ("disk full: …"), or empty when all is well.
  [[nodiscard]] std::string alarm() const;

  [[nodiscard]] FlushTotals totals() const;
  [[nodiscard]] const DirtyShards& dirty() const { return dirty_; }

 private:
  struct Outcome {
    std::uint64_t bytes = 0;
    std::uint64_t folded = 0;
  };
  absl::StatusOr<Outcome> Write();

  // Constant after construction.
  const ShardTable& shards_;
  DirtyShards& dirty_;
  storage::KvStore& store_;
  const Clock& clock_;

  // Guarded.
  mutable Mutex mutex_;
  std::string alarm_ ABSL_GUARDED_BY(mutex_);
  Clock::TimePoint not_before_ ABSL_GUARDED_BY(mutex_) = Clock::TimePoint::min();
  FlushTotals totals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::parameter_server
