#pragma once

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/buckets/bucket_table.h"
#include "services/parameter_server/core/serving/copy_transfer.h"
#include "services/parameter_server/core/storage/bucket_store.h"
#include "services/parameter_server/core/storage/snapshots.h"
#include "services/parameter_server/core/storage/storage_queue.h"
#include "services/parameter_server/core/storage/stored_state.h"

namespace adamant::parameter_server {

/// Brings buckets into the table, and the same content to disk: those that are created, or come
/// back, and copies.
/// Threads: one, that of the disk.
/// Errors: those of the store. What is stored and cannot be used is reported as lost.
class BucketLoader {
 public:
  /// All must outlive this.
  BucketLoader(BucketTable& table,
               BucketStore& store,
               const Snapshots& snapshots,
               StoredState& stored,
               CopyTransfer& copies,
               const Clock& clock);

  /// Does what ReplicaHost::Load asks for.
  absl::Status Load(BucketId bucket, const LoadTask& task);

  /// Stores copies that have come, by bucket with its life, which count then.
  absl::Status InstallCopies(const std::map<BucketId, std::uint64_t>& lives);

 private:
  [[nodiscard]] Bucket::Content Create(BucketId bucket, const LoadTask& task) const;
  absl::StatusOr<Bucket::Content> Restore(BucketId bucket, const LoadTask& task);
  [[nodiscard]] absl::StatusOr<Bucket::Content> RestoreSnapshot(BucketId bucket,
                                                                const LoadTask& task) const;

  BucketTable& table_;
  BucketStore& store_;
  const Snapshots& snapshots_;
  StoredState& stored_;
  CopyTransfer& copies_;
  const Clock& clock_;
};

}  // namespace adamant::parameter_server
