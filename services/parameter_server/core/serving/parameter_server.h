#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/base/system/job_attempt.h"
#include "services/common/base/system/parallel_for.h"
#include "services/common/optimiser/optimiser.h"
#include "services/common/storage/kv_store.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/buckets/bucket.h"
#include "services/parameter_server/core/buckets/records.h"
#include "services/parameter_server/core/driver.h"
#include "services/parameter_server/core/replication/replica.h"
#include "services/parameter_server/core/serving/server_options.h"
#include "services/parameter_server/core/shards/dirty_shards.h"
#include "services/parameter_server/core/shards/shard_catalog.h"
#include "services/parameter_server/core/shards/shard_table.h"
#include "services/parameter_server/core/storage/damage_log.h"
#include "services/parameter_server/core/storage/flusher.h"
#include "services/parameter_server/core/storage/scrub.h"
#include "services/parameter_server/core/storage/snapshots.h"
#include "services/parameter_server/core/storage/stored_bucket.h"
#include "services/parameter_server/core/updates/messages.h"

namespace adamant::parameter_server {

/// A parameter server without its network: its replicas of buckets, with their shards, records and
/// deduplication tables; snapshots; and the way of all that to a store.
///
/// The driver calls Tick every tenth of a beacon's interval, ApplyCommitted and DoStorage when they
/// are wanted (Driver), Flush when flusher().DueAt() has come and Scrub when ScrubDueAt() has.
/// Threads: any, unless said otherwise; only DoStorage, Flush, ReadStored, Scrub and TakeSnapshot
/// wait for the disk, and they belong on one thread of their own. It starts none; driven by one
/// thread alone it never waits for another and is deterministic. One lock guards replicas and
/// records: it is held for pointers and numbers, never while values are read or written or
/// callbacks run.
class ParameterServer : private ReplicaHost {
 public:
  /// `store`, `clock` and `driver` must outlive this.
  ParameterServer(ServerOptions options,
                  storage::KvStore& store,
                  const Clock& clock,
                  Driver& driver);
  ~ParameterServer() override;
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  // --- The controller

  /// The records, by bucket (lines of a lower epoch than known are ignored), and the holders that
  /// are proved to be dead.
  void SetConfigurations(std::span<const Configuration> buckets, const std::vector<Holder>& dead);

  /// All that was reported and still holds.
  [[nodiscard]] std::vector<BucketReport> Reports();

  [[nodiscard]] std::vector<BucketProgress> Progress();

  /// What this server is to each bucket.
  [[nodiscard]] std::vector<Replica::Role> Roles() const;

  // --- Peers

  /// A way to this peer is open anew: what was sent before may be lost.
  void OnPeerConnected(const Holder& peer);
  void OnPeerMessage(const Holder& from, PeerMessage message);
  void Tick();

  /// Applies what is committed and sends what is to be copied.
  void ApplyCommitted();

  // --- Training traffic

  /// Lets a writer in. FailedPrecondition when a higher incarnation has been let in for its slot,
  /// or its own been refused (RefuseWritersBelow), which also fences its later pushes;
  /// InvalidArgument for a slot outside the job.
  absl::Status Admit(const Writer& writer);

  /// Fences, by worker slot, the incarnations below these: the controller has given them up, and
  /// they may live. Of their pushes none is appended after this.
  void RefuseWritersBelow(std::span<const std::uint64_t> incarnations);

  /// Begins a push; `done` is called with the answers when all are settled, perhaps from within,
  /// perhaps never before this server is destroyed. Its spans must stay valid as long as
  /// `push.owner` lives.
  void Submit(const Push& push, PushDone done);

  /// Updates to shards applied since the start for writers that asked here.
  [[nodiscard]] std::uint64_t updates_applied() const { return updates_applied_; }

  /// Values of now (`snapshot` 0) or of a snapshot, one answer per shard. `asking`: whose included
  /// sequence is told; null for none. A snapshot's value that cannot be read is written anew from
  /// memory, if that has it, with the next DoStorage: a writer is told kNoSuchSnapshot until then.
  /// Errors: InvalidArgument for a shard outside the model; without a writer, those of
  /// Snapshots::Read.
  absl::StatusOr<std::vector<ShardValue>> Fetch(const Writer* asking,
                                                std::span<const ShardId> shards,
                                                std::uint64_t snapshot);

  /// What of this writer's updates is on disk, by shard; and asks all members for a flush. Shards
  /// that this server may not read now, or that are outside the model, have 0.
  std::vector<std::uint64_t> RequestFlush(const Writer& writer, std::span<const ShardId> shards);

  // --- Records

  [[nodiscard]] RecordAnswer GetRecord(std::string_view key);

  /// Sets a record if its version is `expected` (0: absent). `done` is called when all copies have
  /// it and it is on this disk, or when it is refused; perhaps from within.
  /// Error: InvalidArgument for an empty or oversized key or value; `done` is not called then.
  absl::Status PutRecord(std::string_view key,
                         std::uint64_t expected,
                         std::string_view value,
                         RecordDone done);

  // --- The disk: one thread

  /// Reads and verifies what the store holds, bucket by bucket with `parallel_for`, and marks it as
  /// opened by this process. What was read stays in memory for a minute, so that a bucket which
  /// comes back here is read once. Once, first. Errors: those of the store; ResourceExhausted
  /// raises the alarm: try again after a while, and until then tell nobody what is stored.
  absl::Status ReadStored(const ParallelFor& parallel_for = OneByOne);

  /// What ReadStored found, without the buckets that have been loaded or learnt here since.
  [[nodiscard]] StoredBuckets Stored();

  /// Loads and creates buckets, logs entries, writes records: all that is waiting.
  /// Errors: those of the store, except a full disk, which raises the alarm and is tried again;
  /// what is on disk is then unknown, so the process must end. DataLoss for a snapshot that a
  /// writer waits for and nobody can have from here: another copy of the bucket can take it.
  absl::Status DoStorage();

  /// When DoStorage should be tried again by itself.
  [[nodiscard]] Clock::TimePoint StorageDueAt() const;

  /// Writes back what is dirty: see Flusher::Flush.
  absl::Status Flush();

  /// Reads and checks one value of what is stored of the buckets held here. One that is damaged, or
  /// cannot be read, is written anew from memory with the next Flush or DoStorage; then all others
  /// are read without a pause.
  void Scrub();
  [[nodiscard]] Clock::TimePoint ScrubDueAt() const;
  [[nodiscard]] const ScrubTotals& scrubbed() const { return scrubbed_; }

  /// What was found damaged on the disk since the start, with its file. Any thread.
  [[nodiscard]] std::vector<std::string> damages() const { return damages_.texts(); }

  /// See Snapshots: of the buckets that this server is primary of. Unavailable while one of them
  /// cannot be read here, or is of another generation than is asked for.
  absl::StatusOr<std::vector<SnapshotBucket>> TakeSnapshot(const SnapshotRequest& request);

  [[nodiscard]] const Flusher& flusher() const { return flusher_; }
  [[nodiscard]] const DirtyShards& dirty() const { return dirty_; }

  /// Of DescribeFull ("disk full: …"), or empty when all is well.
  [[nodiscard]] std::string alarm() const;

  [[nodiscard]] JobAttempt attempt() const {
    return {.job_uid = options_.job_uid, .attempt = options_.attempt};
  }
  [[nodiscard]] const Holder& self() const { return options_.self; }
  [[nodiscard]] const ShardLayout& layout() const { return catalog_.layout(); }
  [[nodiscard]] std::uint32_t writers() const { return options_.writers; }

 private:
  /// Holds the lock; when it goes, what became due under the lock is done: answers given.
  class Session;

  struct Due {
    PushStatePtr push;
    std::size_t index = 0;
    ShardAck ack = {};
    LiveShardPtr persisted_in = nullptr;  ///< for ShardAck::persisted
    Writer writer = {};
  };
  struct DueRecord {
    RecordDone done;
    RecordAnswer answer;
  };
  // Tasks name the life of the bucket (Bucket::life) that they are for: after it they are void.
  struct StoredPut {
    BucketId bucket = 0;
    std::uint64_t life = 0;
    std::string key;
    std::uint64_t version = 0;  ///< of this put; others may have followed it by now
    Lsn lsn = 0;
    RecordDone done;  ///< none: nobody waits
  };
  struct LoadTask {
    std::uint64_t life = 0;
    bool create = false;
    Epoch epoch = 0;
    std::uint64_t generation = 0;
    std::uint64_t snapshot = 0;  ///< that it comes back from; 0: from what is live
  };
  struct PersistTask {
    BucketId bucket = 0;
    std::uint64_t life = 0;
    std::uint64_t generation = 0;
    EntryPtr entry;
    std::uint64_t ticket = 0;  ///< of the replica
  };
  struct UnreadableCopy {
    absl::Status why;
    bool is_needed = false;  ///< a writer waits for it
  };
  /// What waits for the disk.
  struct Tasks {
    std::set<BucketId> unmarked = {};  ///< whose stored copy no longer counts
    std::map<BucketId, LoadTask> loads = {};
    std::vector<PersistTask> persists = {};
    std::map<BucketId, std::uint64_t> installs = {};  ///< copies that must be on disk to count
    std::vector<StoredPut> puts = {};
    std::map<std::pair<std::uint64_t, BucketId>, UnreadableCopy> unreadable = {};  // by snapshot

    [[nodiscard]] bool empty() const {
      return unmarked.empty() && loads.empty() && persists.empty() && installs.empty() &&
             puts.empty() && unreadable.empty();
    }
  };
  /// How a bucket stands when a flush begins.
  struct FlushedBucket {
    std::uint64_t life = 0;
    Epoch epoch = 0;
    Lsn committed = 0;
  };
  /// A copy that has come and does not count yet.
  struct Installing {
    std::uint64_t copy = 0;
    std::uint32_t last_index = 0;  ///< of the part whose acknowledgement says that it counts
  };
  /// A part of a copy that may be sent.
  struct PartDue {
    BucketId bucket = 0;
    std::uint64_t copy = 0;
    std::uint32_t index = 0;
  };

  // ReplicaHost.
  void Send(const Holder& to, PeerMessage message) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Propose(const Proposal& proposal) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Persist(BucketId bucket, const EntryPtr& entry, std::uint64_t ticket) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Commit(BucketId bucket, const EntryPtr& entry) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Load(BucketId bucket, bool create) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Serving(BucketId bucket) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Demoted(BucketId bucket) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartCopy(BucketId bucket, const Holder& learner, std::uint64_t copy, Lsn base) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StopCopy(BucketId bucket) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Learn(BucketId bucket, const CopyBegin& begin) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Clear(BucketId bucket) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Pushes (push.cc).
  [[nodiscard]] bool WellFormed(const Push& push) const;
  [[nodiscard]] bool WellFormed(const Push& push, const ShardUpdate& update) const;
  void AppendPush(const Push& push, const PushStatePtr& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void JudgeUpdate(const LoggedUpdate& update,
                   std::uint64_t map_epoch,
                   const Waiting::Answer& asking,
                   std::map<BucketId, std::pair<Entry, Waiting>>& entries)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] Access AccessOf(const Bucket& bucket) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Settle(const Waiting::Answer& answer, PushOutcome outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  [[nodiscard]] BucketReport ServingReport(BucketId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Copies (copying.cc).
  void OnCopyPart(const Holder& from,
                  const PeerMessage& message,
                  LiveShardPtr shard,
                  SequenceTable sequences) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AskForCopyAgain(BucketId id, const Holder& primary) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnCopyAck(const Holder& from, BucketId id, const CopyAck& ack)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishReceiving(BucketId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Installed(BucketId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReportInstalling() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PlanParts(BucketId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendPart(const PartDue& part);

  // The disk (storing.cc, loading.cc, scrubbing.cc).
  [[nodiscard]] bool Lives(BucketId id, std::uint64_t life) const;
  std::vector<FlushedBucket> BeginFlush();
  void EndFlush(std::span<const FlushedBucket> flushed);
  void NoteErased(std::span<const FlushedBucket> flushed);
  absl::Status Unmark(const std::set<BucketId>& buckets);
  absl::Status LoadBucket(BucketId id, const LoadTask& task);
  Bucket::Content Create(BucketId id, const LoadTask& task);
  [[nodiscard]] absl::StatusOr<StoredContent> LoadStored(BucketId id) const;
  absl::StatusOr<StoredContent> TakeStored(BucketId id);
  absl::StatusOr<Bucket::Content> Restore(BucketId id, const LoadTask& task);
  absl::StatusOr<Bucket::Content> RestoreSnapshot(BucketId id, const LoadTask& task);
  absl::Status StoreLoaded(BucketId id, const LoadTask& task, const Bucket::Content& content);
  std::vector<storage::Change> EraseLog(BucketId id);
  absl::Status StoreContent(BucketId id,
                            const Bucket::Content& content,
                            std::vector<storage::Change> changes);
  absl::Status StoreRecords(BucketId id,
                            const RecordMap& records,
                            std::uint64_t generation,
                            std::vector<storage::Change> changes);
  absl::Status PersistEntries(const std::vector<PersistTask>& persists);
  absl::Status InstallCopies(const std::map<BucketId, std::uint64_t>& lives);
  absl::Status StorePuts(const std::vector<StoredPut>& puts);
  [[nodiscard]] bool IsStored(BucketId id) const;
  void OnDamage(std::string_view problem, std::string_view then);
  void BeginScrub();
  absl::Status ScrubShard(ShardId id);
  absl::Status ScrubRecords(BucketId id);
  void ScrubCopy(const ScrubbedValue& value);
  absl::StatusOr<ShardValue> ReadSnapshot(const Writer* asking,
                                          std::uint64_t snapshot,
                                          const ShardIdentity& identity);
  absl::Status RepairSnapshot(std::uint64_t snapshot, BucketId id, const UnreadableCopy& copy);
  absl::Status Do(Tasks& tasks);
  void Return(Tasks tasks);
  void RaiseDiskFull(const absl::Status& status);

  void ForgetStored(BucketId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetContent(BucketId id, Bucket::Content content) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const ServerOptions options_;
  storage::KvStore& store_;
  const Clock& clock_;
  Driver& driver_;

  DirtyShards dirty_;  // any thread
  const ShardCatalog catalog_;

  // Of the thread that waits for the disk.
  std::vector<Lsn> logged_until_;  // by bucket: the last entry stored
  // By bucket: entries up to this are erased, and are not looked at again, because a store may have
  // to pass by everything that ever was there.
  std::vector<Lsn> erased_until_;
  std::vector<ScrubbedValue> scrub_pass_;
  std::size_t scrub_next_ = 0;                                // of them
  std::set<std::pair<std::uint64_t, BucketId>> lost_copies_;  // by snapshot; alarms tell of them
  Clock::TimePoint scrub_at_;
  std::size_t scrub_hurried_ = 0;  // values that are read without a pause
  ScrubTotals scrubbed_;

  // Each safe for any thread.
  std::atomic<std::uint64_t> updates_applied_ = 0;
  ShardTable shard_table_;
  Snapshots snapshots_;
  Flusher flusher_;
  DamageLog damages_;
  std::optional<std::uint64_t> opened_before_;  // by this incarnation of the slot; 0: by none

  // Guarded.
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Bucket>> buckets_ ABSL_GUARDED_BY(mutex_);
  std::map<std::uint32_t, std::uint64_t> newest_ ABSL_GUARDED_BY(mutex_);  // incarnation by slot
  StoredBuckets stored_ ABSL_GUARDED_BY(mutex_);
  std::map<BucketId, StoredContent> read_ ABSL_GUARDED_BY(mutex_);  // as it is on disk
  Clock::TimePoint read_until_ ABSL_GUARDED_BY(mutex_) = Clock::TimePoint::max();
  std::map<BucketId, BucketReport> lost_ ABSL_GUARDED_BY(mutex_);
  std::vector<LiveShardPtr> to_apply_ ABSL_GUARDED_BY(mutex_);
  std::deque<PartDue> to_send_ ABSL_GUARDED_BY(mutex_);
  Tasks tasks_ ABSL_GUARDED_BY(mutex_);
  std::map<BucketId, Installing> installing_ ABSL_GUARDED_BY(mutex_);
  Clock::TimePoint next_install_report_ ABSL_GUARDED_BY(mutex_){};
  std::string alarm_ ABSL_GUARDED_BY(mutex_);
  Clock::TimePoint storage_not_before_ ABSL_GUARDED_BY(mutex_) = Clock::TimePoint::min();
  std::vector<Due> due_ ABSL_GUARDED_BY(mutex_);
  std::vector<DueRecord> due_records_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::parameter_server
