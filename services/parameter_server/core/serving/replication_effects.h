#pragma once

#include <cstdint>

#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/common/protocol/persistence_mode.h"
#include "services/parameter_server/core/buckets/bucket_table.h"
#include "services/parameter_server/core/replication/replica_host.h"
#include "services/parameter_server/core/serving/copy_transfer.h"
#include "services/parameter_server/core/storage/storage_queue.h"
#include "services/parameter_server/core/storage/stored_state.h"

namespace adamant::parameter_server {

/// Does what the replicas of the bucket table ask for.
/// Threads: as ReplicaHost, under a Session of the table.
class ReplicationEffects final : public ReplicaHost {
 public:
  /// All must outlive this.
  ReplicationEffects(BucketTable& table,
                     StorageQueue& queue,
                     StoredState& stored,
                     CopyTransfer& copies,
                     PersistenceMode mode);

  void Send(const ServerId& to, PeerMessage message) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(table_.mutex());
  void Propose(const Proposal& proposal) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(table_.mutex());
  void Persist(BucketId bucket, const EntryPtr& entry, std::uint64_t ticket) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(table_.mutex());
  void Commit(BucketId bucket, const EntryPtr& entry) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(table_.mutex());
  void Load(BucketId bucket, bool create) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(table_.mutex());
  void Serving(BucketId bucket) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(table_.mutex());
  void Demoted(BucketId bucket) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(table_.mutex());
  void StartCopy(BucketId bucket, const ServerId& learner, std::uint64_t copy, Lsn base) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(table_.mutex());
  void StopCopy(BucketId bucket) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(table_.mutex());
  void Learn(BucketId bucket, const CopyBegin& begin) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(table_.mutex());
  void Clear(BucketId bucket) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(table_.mutex());

 private:
  void CommitUpdates(BucketId bucket, const EntryPtr& entry, Waiting& waiting)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(table_.mutex());
  void CommitPuts(BucketId bucket, const Entry& entry, Waiting& waiting)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(table_.mutex());

  BucketTable& table_;
  StorageQueue& queue_;
  StoredState& stored_;
  CopyTransfer& copies_;
  const PersistenceMode mode_;
};

}  // namespace adamant::parameter_server
