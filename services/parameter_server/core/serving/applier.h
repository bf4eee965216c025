#pragma once

#include "services/parameter_server/core/buckets/bucket_table.h"
#include "services/parameter_server/core/serving/copy_transfer.h"
#include "services/parameter_server/core/shards/dirty_shards.h"

namespace adamant::parameter_server {

/// Does what sessions have deferred: applies what is committed, and sends what is to be copied.
/// Threads: any, under no lock.
class Applier {
 public:
  /// All must outlive this.
  Applier(BucketTable& table, CopyTransfer& copies, DirtyShards& dirty)
      : table_(table), copies_(copies), dirty_(dirty) {}

  /// Returns when nothing is deferred any more.
  void Run();

 private:
  BucketTable& table_;
  CopyTransfer& copies_;
  DirtyShards& dirty_;
};

}  // namespace adamant::parameter_server
