#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/base/system/parallel_for.h"
#include "services/common/storage/kv_store.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/buckets/bucket_table.h"
#include "services/parameter_server/core/driver.h"
#include "services/parameter_server/core/replication/replica.h"
#include "services/parameter_server/core/serving/applier.h"
#include "services/parameter_server/core/serving/bucket_loader.h"
#include "services/parameter_server/core/serving/copy_transfer.h"
#include "services/parameter_server/core/serving/parameter_server_options.h"
#include "services/parameter_server/core/serving/push_handler.h"
#include "services/parameter_server/core/serving/record_handler.h"
#include "services/parameter_server/core/serving/replication_effects.h"
#include "services/parameter_server/core/serving/shard_reader.h"
#include "services/parameter_server/core/serving/snapshot_taker.h"
#include "services/parameter_server/core/serving/storage_worker.h"
#include "services/parameter_server/core/serving/write_back.h"
#include "services/parameter_server/core/shards/dirty_shards.h"
#include "services/parameter_server/core/shards/shard_catalog.h"
#include "services/parameter_server/core/storage/bucket_store.h"
#include "services/parameter_server/core/storage/flusher.h"
#include "services/parameter_server/core/storage/scrub.h"
#include "services/parameter_server/core/storage/scrubber.h"
#include "services/parameter_server/core/storage/snapshots.h"
#include "services/parameter_server/core/storage/storage_queue.h"
#include "services/parameter_server/core/storage/stored_state.h"
#include "services/parameter_server/core/updates/messages.h"

namespace adamant::parameter_server {

/// A parameter server without its network: its replicas of buckets, with their shards, records and
/// deduplication tables; snapshots; and the way of all that to a store.
///
/// The driver calls Tick every tenth of a beacon's interval, ApplyCommitted and DoStorage when they
/// are wanted (Driver), Flush and Scrub when flusher().DueAt() and scrubber().DueAt() have come.
/// Threads: any, unless said otherwise; only DoStorage, Flush, ReadStored, Scrub and TakeSnapshot
/// wait for the disk, and they belong on one thread of their own. It starts none; driven by one
/// thread alone it never waits for another and is deterministic. One lock guards replicas and
/// records: it is held for pointers and numbers, never while values are read or written or
/// callbacks run.
class ParameterServer {
 public:
  /// `store`, `clock` and `driver` must outlive this.
  ParameterServer(ParameterServerOptions options,
                  storage::KvStore& store,
                  const Clock& clock,
                  Driver& driver);
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  // --- The controller

  /// The configurations, by bucket (lines of a lower configuration than known are ignored), and the
  /// servers that are proved to be dead.
  void SetConfigurations(std::span<const Configuration> buckets, const std::vector<ServerId>& dead);

  /// All that was reported and still holds.
  [[nodiscard]] std::vector<BucketReport> Reports();

  [[nodiscard]] std::vector<BucketProgress> Progress();

  /// Returns what this server is to each bucket.
  [[nodiscard]] std::vector<Replica::Role> Roles() const;

  // --- Peers

  /// A way to this peer is open anew: what was sent before may be lost.
  void OnPeerConnected(const ServerId& peer);
  void OnPeerMessage(const ServerId& from, PeerMessage message);
  void Tick();

  /// Applies what is committed and sends what is to be copied.
  void ApplyCommitted();

  // --- Training traffic

  /// Lets a writer in. FailedPrecondition when a higher incarnation has been let in for its slot,
  /// or its own been refused (RefuseWritersBelow), which also fences its later pushes;
  /// InvalidArgument for a slot outside the job.
  absl::Status Admit(const WorkerId& writer);

  /// Fences, by worker slot, the incarnations below these: the controller has given them up, and
  /// they may live. Of their pushes none is appended after this.
  void RefuseWritersBelow(std::span<const Incarnation> incarnations);

  /// Begins a push; `done` is called with the answers when all are settled, perhaps from within,
  /// perhaps never before this server is destroyed. Its spans must stay valid as long as
  /// `push.owner` lives.
  void Submit(const Push& push, PushDone done);

  /// Updates to shards applied since the start for writers that asked here.
  [[nodiscard]] std::uint64_t updates_applied() const { return pushes_.applied(); }

  /// Values of now (`snapshot` 0) or of a snapshot, one answer per shard. `asking`: whose included
  /// sequence is told; null for none. A snapshot's value that cannot be read is written anew from
  /// memory, if that has it, with the next DoStorage: a writer is told kNoSuchSnapshot until then.
  /// `copies`, of a snapshot: by shard the checksum of the copy of its bucket that is meant, for
  /// who knows it by a checkpoint's manifest. That never changes, so it is given whether this
  /// server is primary or not, and nothing else under the same number; `asking` does not matter
  /// then. Errors: InvalidArgument for a shard outside the model, or another number of copies;
  /// without a writer, and of `copies`, those of Snapshots::Read.
  absl::StatusOr<std::vector<ShardValue>> Fetch(const WorkerId* asking,
                                                std::span<const ShardId> shards,
                                                std::uint64_t snapshot,
                                                std::span<const std::uint64_t> copies = {});

  /// Returns what of this writer's updates is on disk, by shard, and asks all replicas for a flush.
  /// Shards that this server may not read now, or that are outside the model, have 0.
  std::vector<PersistedShard> RequestFlush(const WorkerId& writer, std::span<const ShardId> shards);

  // --- Records

  [[nodiscard]] RecordHandler& records() { return records_; }

  // --- The disk: one thread

  /// Reads and verifies what the store holds, bucket by bucket with `parallel_for`, and marks it as
  /// opened by this process. What was read stays in memory for a minute, so that a bucket which
  /// comes back here is read once. Once, first. Errors: those of the store; ResourceExhausted
  /// raises the alarm: try again after a while, and until then tell nobody what is stored.
  absl::Status ReadStored(const ParallelFor& parallel_for = OneByOne);

  /// Returns what ReadStored found, without the buckets that have been loaded or learnt here since.
  [[nodiscard]] StoredBuckets Stored();

  /// Loads and creates buckets, logs entries, writes records: all that is waiting.
  /// Errors: those of the store, except a full disk, which raises the alarm and is tried again;
  /// what is on disk is then unknown, so the process must end. DataLoss for a snapshot that a
  /// writer waits for and nobody can have from here: another copy of the bucket can take it.
  absl::Status DoStorage();

  /// Returns when DoStorage should be tried again by itself.
  [[nodiscard]] Clock::TimePoint StorageDueAt() const;

  /// Writes back what is dirty: see Flusher::Flush.
  absl::Status Flush();

  /// Reads and checks one value of what is stored of the buckets held here. One that is damaged, or
  /// cannot be read, is written anew from memory with the next Flush or DoStorage; then all others
  /// are read without a pause.
  void Scrub();
  /// Threads: see Scrubber.
  [[nodiscard]] const Scrubber& scrubber() const { return scrubber_; }

  /// See Snapshots: of the buckets that this server is primary of. Unavailable while one of them
  /// cannot be read here, or is of another generation than is asked for.
  absl::StatusOr<std::vector<SnapshotBucket>> TakeSnapshot(const protocol::TakeSnapshot& request);

  [[nodiscard]] const Flusher& flusher() const { return flusher_; }

  /// Of DescribeFull ("disk full: …"), or empty when all is well.
  [[nodiscard]] std::string alarm() const;

  [[nodiscard]] const ParameterServerOptions& options() const { return options_; }
  [[nodiscard]] const ShardLayout& layout() const { return catalog_.layout(); }

 private:
  // Constant after construction.
  const ParameterServerOptions options_;
  const Clock& clock_;

  DirtyShards dirty_;
  const ShardCatalog catalog_;
  StorageQueue queue_;
  BucketStore bucket_store_;
  StoredState stored_;
  Snapshots snapshots_;
  CopyTransfer copies_;
  ReplicationEffects effects_;
  BucketTable table_;
  Flusher flusher_;

  // What is asked for.
  Applier applier_;
  PushHandler pushes_;
  RecordHandler records_;
  ShardReader reader_;

  // The disk.
  WriteBack write_back_;
  SnapshotTaker snapshot_taker_;
  Scrubber scrubber_;
  BucketLoader loader_;
  StorageWorker storage_worker_;
};

}  // namespace adamant::parameter_server
