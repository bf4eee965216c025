#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/parameter_server/core/buckets/bucket_table.h"
#include "services/parameter_server/core/driver.h"
#include "services/parameter_server/core/storage/snapshots.h"

namespace adamant::parameter_server {

/// Copies the buckets that this server is primary of into a snapshot.
/// Threads: one at a time; waits for the disk.
class SnapshotTaker {
 public:
  /// All must outlive this.
  SnapshotTaker(const BucketTable& table, Snapshots& snapshots, const Clock& clock)
      : table_(table), snapshots_(snapshots), clock_(clock) {}

  /// See ParameterServer::TakeSnapshot.
  absl::StatusOr<std::vector<SnapshotBucket>> Take(const TakeSnapshot& request);

 private:
  const BucketTable& table_;
  Snapshots& snapshots_;
  const Clock& clock_;
};

}  // namespace adamant::parameter_server
