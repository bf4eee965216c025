#include "services/parameter_server/core/shards/dirty_shards.h"

#include <algorithm>
#include <utility>

namespace adamant::parameter_server {

DirtyShards::DirtyShards(FlushLimits limits, const Clock& clock, std::function<void()> due_changed)
    : limits_(limits), clock_(clock), due_changed_(std::move(due_changed)) {}

void DirtyShards::Add(ShardId shard, std::uint64_t bytes) {
  bool earlier = false;
  {
    const MutexLock lock(mutex_);
    const bool was_full = waiting_bytes_ >= limits_.bytes;
    earlier = waiting_.empty();
    if (waiting_.try_emplace(shard, Waiting{bytes, clock_.Now()}).second) {
      waiting_bytes_ += bytes;
    }
    earlier = earlier || (!was_full && waiting_bytes_ >= limits_.bytes);
  }
  if (earlier) {
    due_changed_();
  }
}

void DirtyShards::Hurry() {
  {
    const MutexLock lock(mutex_);
    if ((waiting_.empty() && !again_) || std::exchange(hurry_, true)) {
      return;
    }
  }
  due_changed_();
}

void DirtyShards::FlushAgain() {
  {
    const MutexLock lock(mutex_);
    if (again_) {
      return;
    }
    again_ = clock_.Now();
  }
  due_changed_();
}

std::vector<DirtyShards::Entry> DirtyShards::Take() {
  const MutexLock lock(mutex_);
  taken_in_hurry_ = std::exchange(hurry_, false);
  taken_again_ = std::exchange(again_, std::nullopt);
  taken_.clear();
  for (const auto& [shard, waiting] : waiting_) {
    taken_.push_back({shard, waiting.bytes, waiting.since});
  }
  waiting_.clear();
  waiting_bytes_ = 0;
  return taken_;
}

void DirtyShards::Written() {
  const MutexLock lock(mutex_);
  taken_.clear();
}

void DirtyShards::Return() {
  const MutexLock lock(mutex_);
  for (const Entry& entry : taken_) {
    const auto [waiting, inserted] =
        waiting_.try_emplace(entry.shard, Waiting{entry.bytes, entry.since});
    waiting->second.since = std::min(waiting->second.since, entry.since);
    waiting_bytes_ += inserted ? entry.bytes : 0;
  }
  taken_.clear();
  again_ = taken_again_ ? taken_again_ : again_;
  hurry_ = hurry_ || taken_in_hurry_;  // who has asked for it does not ask again
}

Clock::TimePoint DirtyShards::DueAt() const {
  const MutexLock lock(mutex_);
  const bool at_once = hurry_ || waiting_bytes_ >= limits_.bytes;
  // Not the present: who compares that with a time read before it would find nothing due, ever.
  const Clock::Duration wait = at_once ? Clock::Duration::zero() : limits_.interval / 2;
  Clock::TimePoint due = again_ ? *again_ + wait : Clock::TimePoint::max();
  for (const auto& [shard, waiting] : waiting_) {
    due = std::min(due, waiting.since + wait);
  }
  return due;
}

std::uint64_t DirtyShards::bytes() const {
  const MutexLock lock(mutex_);
  std::uint64_t bytes = waiting_bytes_;
  for (const Entry& entry : taken_) {
    bytes += entry.bytes;
  }
  return bytes;
}

std::optional<Clock::TimePoint> DirtyShards::Oldest() const {
  std::optional<Clock::TimePoint> oldest;
  for (const auto& [shard, waiting] : waiting_) {
    oldest = std::min(oldest.value_or(waiting.since), waiting.since);
  }
  for (const Entry& entry : taken_) {
    oldest = std::min(oldest.value_or(entry.since), entry.since);
  }
  return oldest;
}

Clock::Duration DirtyShards::OldestAge() const {
  const MutexLock lock(mutex_);
  const auto oldest = Oldest();
  return oldest ? clock_.Now() - *oldest : Clock::Duration::zero();
}

}  // namespace adamant::parameter_server
