#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/common/optimiser/optimiser.h"
#include "services/parameter_server/core/dirty_shards.h"
#include "services/parameter_server/core/messages.h"
#include "services/parameter_server/core/sequence_table.h"
#include "services/parameter_server/core/shard_record.h"

namespace adamant::parameter_server {

/// A dense update on its way into a shard. `ack` and `settled` belong to the shard until Await
/// returns.
struct PendingUpdate {
  Writer writer;
  std::uint64_t sequence = 0;
  std::uint64_t fetched_version = 0;
  bool after_loss = false;
  bool is_gradient = false;       ///< through the optimiser; else added
  RuleStep step;                  ///< of a gradient
  std::span<const float> values;  ///< one per element of the shard, all finite
  ShardAck ack = {};
  bool settled = false;
};

/// A shard in memory. Updates queue; a thread that finds the shard free applies all that has
/// queued, in the order of the queue, block by block so that a block stays in cache while every
/// update passes over it. The rules work element by element, so that changes no bits.
/// Threads: any. Lock order: the queue's lock is not held while content changes; the dirty list's
/// lock is taken inside the content's.
/// Source: flat combining (Hendler, Incze, Shavit and Tzafrir 2010).
class LiveShard {
 public:
  /// `content` has a value per element of `shard`, and state as the optimiser wants it. `dirty`
  /// must outlive this.
  LiveShard(const ShardIdentity& identity, ShardContent content, DirtyShards& dirty);

  /// Queues `update`, which must live until Await has returned.
  void Enqueue(PendingUpdate& update);

  /// Applies what has queued, unless another thread is at it.
  void ApplyIfFree();

  /// Returns when `update` is settled: applied or judged otherwise. Applies it itself if no other
  /// thread does.
  void Await(PendingUpdate& update);

  /// A copy of the values. `asking`: whose last included sequence is told; null for none.
  [[nodiscard]] ShardValue Read(const Writer* asking) const;

  [[nodiscard]] const ShardIdentity& identity() const { return identity_; }

  /// The record of now, not yet sealed.
  [[nodiscard]] std::string Encode() const;

  /// The same for a flush: also makes the shard clean. `updates` is increased by the number of
  /// updates since it was clean last.
  std::string EncodeForFlush(std::uint64_t& updates);

  /// The record of EncodeForFlush, with its `updates`, was not stored.
  void FlushFailed(std::uint64_t updates);

 private:
  void ApplyQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mutex_);
  void ApplyBatch(std::span<PendingUpdate* const> batch);
  bool Admit(PendingUpdate& update) ABSL_EXCLUSIVE_LOCKS_REQUIRED(content_mutex_);

  // Constant after construction.
  const ShardIdentity identity_;
  DirtyShards& dirty_;

  // Guarded.
  Mutex queue_mutex_;
  CondVar settled_;
  std::vector<PendingUpdate*> queue_ ABSL_GUARDED_BY(queue_mutex_);
  bool applying_ ABSL_GUARDED_BY(queue_mutex_) = false;

  mutable Mutex content_mutex_;
  ShardContent content_ ABSL_GUARDED_BY(content_mutex_);
  std::uint64_t unflushed_updates_ ABSL_GUARDED_BY(content_mutex_) = 0;
};

}  // namespace adamant::parameter_server
