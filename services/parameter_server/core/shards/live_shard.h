#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/common/optimiser/optimiser.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/shards/dirty_shards.h"
#include "services/parameter_server/core/shards/push_state.h"
#include "services/parameter_server/core/shards/shard_content.h"
#include "services/parameter_server/core/updates/messages.h"

namespace adamant::parameter_server {

/// A committed update on its way into a shard.
struct CommittedUpdate {
  EntryPtr entry;  ///< that `update` belongs to
  const LoggedUpdate* update = nullptr;
  PushStatePtr push = nullptr;                     ///< who waits for it; null: nobody here
  std::size_t index = 0;                           ///< of its answer in `push`
  ConfigurationVersion configuration_version = 0;  ///< of the bucket, for the answer
};

/// Rule by which a shard's updates become changes. Constant.
struct ShardRule {
  const ParameterOptimiser* optimiser = nullptr;
  std::uint64_t begin = 0;       ///< first element of the shard within its tensor
  bool durable_at_once = false;  ///< WalSync and None: nothing acknowledged waits for a flush
};

/// A shard in memory. Committed updates queue, in the order of the log; a thread that finds the
/// shard free applies all that has queued, block by block so that a block stays in cache while
/// every update passes over it. The rules work element by element, so that changes no bits.
/// Threads: any. Lock order: the queue's lock is not held while content changes; the dirty list's
/// lock is taken inside the content's.
/// Source: flat combining (Hendler, Incze, Shavit and Tzafrir 2010).
class LiveShard {
 public:
  /// `content` has a value per element of the shard, and state as the optimiser wants it. `dirty`
  /// must outlive this.
  LiveShard(const ShardIdentity& identity,
            const ShardRule& rule,
            ShardContent content,
            DirtyShards& dirty);

  /// Queues an update. What the content includes already (by lsn) is skipped when its turn comes.
  void Enqueue(CommittedUpdate update);

  /// Applies what has queued, unless another thread is at it, and answers who waits for it.
  void ApplyIfFree();

  /// Returns when all that had queued is applied.
  void Drain();

  /// A copy of the values, with all that has queued. `asking`: whose sequences are told; null for
  /// none.
  [[nodiscard]] ShardValue Read(const WorkerId* asking);

  [[nodiscard]] const ShardIdentity& identity() const { return identity_; }

  /// The record of now with all that has queued, not yet sealed.
  [[nodiscard]] std::string Encode();

  /// The same for a flush: also makes the shard clean. `updates` is increased by the number of
  /// updates since it was clean last.
  std::string EncodeForFlush(std::uint64_t& updates);

  /// The record of the last EncodeForFlush, with its `updates`, was stored, or not.
  void Flushed();
  void FlushFailed(std::uint64_t updates);

  /// Its record is to be written again, changed or not.
  void MarkDirty();

  /// From now on lsns count from 0 in this generation. Nothing may be queued.
  void Rebase(std::uint64_t generation);

  /// Updates applied since its creation, and the table, with all that has queued.
  [[nodiscard]] std::uint64_t version();
  [[nodiscard]] SequenceTable sequences();

  /// All up to this lsn is on the disks of all replicas of the bucket. Waits for nothing.
  void SetDurable(Lsn durable) { durable_ = durable; }

  /// The last sequence of this writer that is on all these disks, as far as this one's flushes
  /// tell which that is.
  [[nodiscard]] Sequence PersistedOf(const WorkerId& writer);

 private:
  /// Updates that were applied when a record was made.
  struct Flush {
    Lsn lsn = 0;
    SequenceTable sequences;
  };

  void ApplyQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mutex_);
  void ApplyBatch(std::span<CommittedUpdate> batch, std::span<ShardAck> acks);
  bool Admit(const CommittedUpdate& update, ShardAck& ack)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(content_mutex_);
  void MarkDirtyLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(content_mutex_);
  [[nodiscard]] Sequence PersistedLocked(const WorkerId& writer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(content_mutex_);

  // Constant after construction.
  const ShardIdentity identity_;
  const ShardRule rule_;
  DirtyShards& dirty_;

  std::atomic<Lsn> durable_ = 0;

  // Guarded.
  Mutex queue_mutex_;
  CondVar applied_;
  std::vector<CommittedUpdate> queue_ ABSL_GUARDED_BY(queue_mutex_);
  bool applying_ ABSL_GUARDED_BY(queue_mutex_) = false;

  Mutex content_mutex_;
  ShardContent content_ ABSL_GUARDED_BY(content_mutex_);
  std::uint64_t unflushed_updates_ ABSL_GUARDED_BY(content_mutex_) = 0;
  std::uint64_t examples_ ABSL_GUARDED_BY(content_mutex_) = 0;  // in updates since it is here
  bool is_dirty_ ABSL_GUARDED_BY(content_mutex_) = false;
  Flush flushing_ ABSL_GUARDED_BY(content_mutex_);
  std::deque<Flush> flushed_ ABSL_GUARDED_BY(content_mutex_);  // here, perhaps not everywhere
  SequenceTable persisted_ ABSL_GUARDED_BY(content_mutex_);
};
using LiveShardPtr = std::shared_ptr<LiveShard>;

}  // namespace adamant::parameter_server
