#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/parameter_server/core/buckets/bucket.h"
#include "services/parameter_server/core/driver.h"
#include "services/parameter_server/core/replication/replica.h"
#include "services/parameter_server/core/shards/shard_catalog.h"
#include "services/parameter_server/core/shards/shard_table.h"

namespace adamant::parameter_server {

/// A part of a copy that may be sent.
struct DuePart {
  BucketId bucket = 0;
  std::uint64_t copy = 0;
  std::uint32_t index = 0;
};

/// Work that is done without the lock, because it takes time.
struct DeferredWork {
  std::vector<LiveShardPtr> shards = {};  ///< with committed updates in their queues
  std::deque<DuePart> parts = {};
  bool flush = false;  ///< what is dirty once `shards` are applied is due

  [[nodiscard]] bool empty() const { return shards.empty() && parts.empty() && !flush; }
};

/// The buckets that a server hosts, under one lock. Who holds a Session has it, and hands the
/// Session on to whom it calls; a View is for reading.
/// Threads: any. The lock is held for pointers and numbers, never while values are read or written
/// or callbacks run. Taken within it: the locks of what waits for the disk, and of queues of
/// shards.
class BucketTable {
 public:
  class Session;
  class View;

  /// All must outlive this. `host`: whom the replicas ask, each time under a Session.
  BucketTable(const ShardCatalog& catalog,
              const Replica::Options& options,
              ReplicaHost& host,
              Driver& driver);
  BucketTable(const BucketTable&) = delete;
  BucketTable& operator=(const BucketTable&) = delete;

  [[nodiscard]] const ShardCatalog& catalog() const { return catalog_; }

  /// The shards of all buckets, as Session::Fill and Clear leave them.
  [[nodiscard]] const ShardTable& shards() const { return shards_; }

  /// Returns what sessions have deferred, once.
  DeferredWork TakeDeferred();

  /// Returns true if the bucket is still in this life (Bucket::life).
  [[nodiscard]] bool Lives(BucketId bucket, std::uint64_t life) const;

  /// Returns what the bucket holds, if it may be read now.
  [[nodiscard]] std::optional<Bucket::Content> ReadableContent(BucketId bucket,
                                                               Clock::TimePoint now) const;

  /// The session under way: for what replicas call back (ReplicaHost).
  [[nodiscard]] Session& session() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return *session_; }

  /// For annotations.
  [[nodiscard]] Mutex& mutex() const ABSL_LOCK_RETURNED(mutex_) { return mutex_; }

 private:
  const ShardCatalog& catalog_;
  Driver& driver_;
  ShardTable shards_;  // any thread

  // Guarded.
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Bucket>> buckets_ ABSL_GUARDED_BY(mutex_);
  DeferredWork deferred_ ABSL_GUARDED_BY(mutex_);
  Session* session_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

/// Holds the lock. When it goes, what became due is done without it: answers are given, and the
/// driver hears that there is deferred work unless this thread will do it.
class ABSL_SCOPED_LOCKABLE BucketTable::Session {
 public:
  enum class Applying { kHere, kElsewhere };

  explicit Session(BucketTable& table, Applying applying = Applying::kElsewhere)
      ABSL_EXCLUSIVE_LOCK_FUNCTION(table.mutex_);
  ~Session() ABSL_UNLOCK_FUNCTION();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] Bucket& bucket(BucketId id);

  /// By id.
  [[nodiscard]] std::span<const std::unique_ptr<Bucket>> buckets();

  /// Gives a bucket its content, or takes it.
  void Fill(BucketId id, Bucket::Content content);
  void Clear(BucketId id);

  // --- When this goes

  void Settle(const Waiting::Answer& answer, PushOutcome outcome);

  /// With the outcome in the answer. ShardAck::persisted is what `shard` says of `writer` then.
  void Settle(const Waiting::Answer& answer, const LiveShardPtr& shard, const WorkerId& writer);
  void Answer(RecordDone done, const RecordAnswer& answer);

  // --- Deferred

  void Apply(const LiveShardPtr& shard);
  void SendPart(const DuePart& part);

  /// Makes all due that is dirty once what was committed before has been applied.
  void FlushSoon();

  // --- At once: the driver only queues them

  void Send(const ServerId& to, PeerMessage message);
  void Propose(const Proposal& proposal);
  void Report(const BucketReport& report);

  /// Says that `table` is the one whose lock this holds.
  void AssertHolds(const BucketTable& table) const ABSL_ASSERT_EXCLUSIVE_LOCK(table.mutex());

 private:
  struct DueAck {
    Waiting::Answer answer;
    LiveShardPtr persisted_in = nullptr;
    WorkerId writer = {};
  };
  struct DueRecord {
    RecordDone done;
    RecordAnswer answer;
  };

  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK(table_.mutex_) {}

  BucketTable& table_;
  const Applying applying_;
  std::vector<DueAck> acks_;
  std::vector<DueRecord> records_;
};

/// Holds the lock for reading what is there.
class ABSL_SCOPED_LOCKABLE BucketTable::View {
 public:
  explicit View(const BucketTable& table) ABSL_EXCLUSIVE_LOCK_FUNCTION(table.mutex_)
      : table_(table) {
    table_.mutex_.Lock();
  }
  ~View() ABSL_UNLOCK_FUNCTION() { table_.mutex_.Unlock(); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  [[nodiscard]] const Bucket& bucket(BucketId id) const;

  /// By id.
  [[nodiscard]] std::span<const std::unique_ptr<Bucket>> buckets() const;

 private:
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK(table_.mutex_) {}

  const BucketTable& table_;
};

}  // namespace adamant::parameter_server
