#pragma once

#include "services/parameter_server/core/buckets/bucket_table.h"
#include "services/parameter_server/core/serving/copy_transfer.h"

namespace adamant::parameter_server {

/// Does what sessions have deferred: applies what is committed, and sends what is to be copied.
/// Threads: any, under no lock.
class Applier {
 public:
  /// Both must outlive this.
  Applier(BucketTable& table, CopyTransfer& copies) : table_(table), copies_(copies) {}

  /// Returns when nothing is deferred any more.
  void Run();

 private:
  BucketTable& table_;
  CopyTransfer& copies_;
};

}  // namespace adamant::parameter_server
