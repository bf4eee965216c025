#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/optimiser/optimiser.h"
#include "services/common/storage/kv_store.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/bucket_table.h"
#include "services/parameter_server/core/dirty_shards.h"
#include "services/parameter_server/core/flusher.h"
#include "services/parameter_server/core/messages.h"
#include "services/parameter_server/core/records.h"
#include "services/parameter_server/core/snapshots.h"

namespace adamant::parameter_server {

struct ServerOptions {
  std::uint64_t job_uid = 0;
  std::uint32_t slot = 0;     ///< of this server
  std::uint32_t writers = 1;  ///< worker slots of the job; bounds the sequence tables
  std::uint64_t seed = 0;     ///< of the initial values
  std::vector<Parameter> parameters = {};
  std::uint32_t buckets = 1;
  std::vector<ParameterOptimiser> optimisers = {};  ///< one per parameter
  FlushLimits flush = {};
  std::function<void()> flush_due_changed = [] {};  ///< see DirtyShards
};

/// A parameter server without its network: the shards of its buckets, their deduplication,
/// snapshots and records, and their write-back to a store.
/// Threads: traffic (Admit, Apply, Fetch and records) from any thread. Prepare, Flush and
/// TakeSnapshot wait for the disk and belong on one thread of their own. It starts none; driven by
/// one thread alone it never waits for another and is deterministic.
class ParameterServer {
 public:
  /// `store` and `clock` must outlive this.
  ParameterServer(ServerOptions options, storage::KvStore& store, const Clock& clock);
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  // --- The bucket map

  /// Takes over a map. What it asks for is then done by Prepare.
  void SetMap(std::span<const BucketRecord> buckets) { buckets_.Update(buckets); }

  /// Creates or loads the buckets that the map asks for. A bucket that cannot be loaded becomes
  /// lost.
  /// Errors: of writing to the store.
  absl::Status Prepare();

  [[nodiscard]] std::vector<BucketReport> Reports() const { return buckets_.Reports(); }

  // --- Training traffic

  /// Lets a writer in. FailedPrecondition when a higher incarnation has been let in for its slot,
  /// which also fences its later pushes; InvalidArgument for a slot outside the job.
  absl::Status Admit(const Writer& writer);

  /// Applies a push: one answer per update, in order, when all are settled.
  std::vector<ShardAck> Apply(const Push& push);

  /// Updates to shards applied since the start.
  [[nodiscard]] std::uint64_t updates_applied() const { return updates_applied_; }

  /// Values of now (`snapshot` 0) or of a snapshot, one answer per shard. `asking`: whose included
  /// sequence is told; null for none.
  /// Errors: InvalidArgument for a shard outside the model; DataLoss for a corrupt snapshot.
  absl::StatusOr<std::vector<ShardValue>> Fetch(const Writer* asking,
                                                std::span<const ShardId> shards,
                                                std::uint64_t snapshot) const;

  // --- Records

  /// Whether the bucket of `key` can be used here: ask before Records::Get and Put.
  [[nodiscard]] BucketTable::Access AccessOfRecord(std::string_view key) const;
  [[nodiscard]] Records& records() { return records_; }

  // --- Persistence

  /// See Snapshots. Unavailable while a bucket of this server is not ready.
  absl::Status TakeSnapshot(std::uint64_t snapshot,
                            std::uint64_t keep_from,
                            std::span<const std::uint64_t> keep);

  [[nodiscard]] Flusher& flusher() { return flusher_; }
  [[nodiscard]] const DirtyShards& dirty() const { return dirty_; }
  [[nodiscard]] std::uint64_t job_uid() const { return options_.job_uid; }
  [[nodiscard]] const ShardLayout& layout() const { return layout_; }

 private:
  struct InFlight;

  [[nodiscard]] ShardIdentity IdentityOf(const Shard& shard) const;
  absl::StatusOr<ShardContent> Load(const ShardIdentity& identity) const;
  absl::StatusOr<std::vector<std::shared_ptr<LiveShard>>> LoadBucket(BucketId bucket);
  absl::StatusOr<std::vector<std::shared_ptr<LiveShard>>> CreateBucket(BucketId bucket);
  [[nodiscard]] bool WellFormed(const Push& push) const;
  [[nodiscard]] bool WellFormed(const Push& push, const ShardUpdate& update) const;
  void RouteUpdate(const Push& push, const ShardUpdate& update, InFlight& flight);
  [[nodiscard]] bool IsStale(const Writer& writer) const;

  // Constant after construction.
  const ServerOptions options_;
  const ShardLayout layout_;
  storage::KvStore& store_;

  // Each safe for any thread.
  std::atomic<std::uint64_t> updates_applied_ = 0;
  DirtyShards dirty_;
  BucketTable buckets_;
  Records records_;
  Snapshots snapshots_;
  Flusher flusher_;

  // Guarded.
  mutable Mutex mutex_;
  std::map<std::uint32_t, std::uint64_t> newest_ ABSL_GUARDED_BY(mutex_);  // incarnation by slot
};

}  // namespace adamant::parameter_server
