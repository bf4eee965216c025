#pragma once

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "services/parameter_server/core/buckets/bucket_table.h"
#include "services/parameter_server/core/shards/dirty_shards.h"
#include "services/parameter_server/core/storage/bucket_store.h"
#include "services/parameter_server/core/storage/flusher.h"
#include "services/parameter_server/core/storage/storage_queue.h"

namespace adamant::parameter_server {

/// Flushes dirty shards, and lets the replicas and the logs on disk know how far.
/// Threads: one, that of the disk.
class WriteBack {
 public:
  /// All must outlive this.
  WriteBack(BucketTable& table,
            const StorageQueue& queue,
            DirtyShards& dirty,
            BucketStore& store,
            Flusher& flusher)
      : table_(table), queue_(queue), dirty_(dirty), store_(store), flusher_(flusher) {}

  /// See Flusher::Flush.
  absl::Status Flush();

 private:
  std::vector<FlushedBucket> Begin();
  void End(std::span<const FlushedBucket> flushed);

  BucketTable& table_;
  const StorageQueue& queue_;
  DirtyShards& dirty_;
  BucketStore& store_;
  Flusher& flusher_;
};

}  // namespace adamant::parameter_server
