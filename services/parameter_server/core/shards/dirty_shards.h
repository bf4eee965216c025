#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::parameter_server {

/// Limits by which changed shards must be written.
struct FlushLimits {
  Clock::Duration interval = std::chrono::seconds(1);  ///< longest that a change is only in memory
  std::uint64_t bytes = std::uint64_t{64} << 20;       ///< most that is changed only in memory
};

/// The shards that differ from their stored copies, and since when.
/// Threads: any.
class DirtyShards {
 public:
  struct Entry {
    ShardId shard = 0;
    std::uint64_t bytes = 0;
    Clock::TimePoint since;
  };

  /// `due_changed` is called when DueAt has become earlier, on the thread that dirtied a shard and
  /// under that shard's lock: it must be short and not call the shard or this.
  DirtyShards(FlushLimits limits, const Clock& clock, std::function<void()> due_changed);

  /// A shard that was clean has changed.
  void Add(ShardId shard, std::uint64_t bytes);

  /// Makes what is dirty due now, and so what FlushAgain has asked for.
  void Hurry();

  /// Makes a flush due, within the limits, even if nothing is dirty by then: the last one wrote
  /// changes of which it could not say so.
  void FlushAgain();

  /// All of them, by id. They stay counted until Written or Return.
  std::vector<Entry> Take();

  /// Notes that what was taken last is stored durably.
  void Written();

  /// Puts back what was taken last and could not be stored: dirty again, as old as before, and due
  /// at once if it was.
  void Return();

  /// Returns when the next flush should begin, so that it can end within the limits;
  /// TimePoint::max() if there is nothing to do. At half the interval: the other half is for
  /// writing. What is due at once has been since it changed: this does not move with the clock.
  [[nodiscard]] Clock::TimePoint DueAt() const;

  [[nodiscard]] std::uint64_t bytes() const;

  /// Age of the oldest change that is not stored durably; 0 if there is none.
  [[nodiscard]] Clock::Duration OldestAge() const;

 private:
  struct Waiting {
    std::uint64_t bytes = 0;
    Clock::TimePoint since;
  };

  [[nodiscard]] std::optional<Clock::TimePoint> Oldest() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const FlushLimits limits_;
  const Clock& clock_;
  const std::function<void()> due_changed_;

  // Guarded.
  mutable Mutex mutex_;
  std::map<ShardId, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<Entry> taken_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<Clock::TimePoint> again_ ABSL_GUARDED_BY(mutex_);  // since when
  std::optional<Clock::TimePoint> taken_again_ ABSL_GUARDED_BY(mutex_);
  bool hurry_ ABSL_GUARDED_BY(mutex_) = false;
  bool taken_in_hurry_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace adamant::parameter_server
