#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/buckets/bucket_table.h"
#include "services/parameter_server/core/shards/dirty_shards.h"
#include "services/parameter_server/core/storage/bucket_store.h"
#include "services/parameter_server/core/storage/damage_log.h"
#include "services/parameter_server/core/storage/scrub.h"
#include "services/parameter_server/core/storage/scrub_schedule.h"
#include "services/parameter_server/core/storage/snapshots.h"
#include "services/parameter_server/core/storage/storage_queue.h"

namespace adamant::parameter_server {

/// Reads again what is stored, so that damage is found while there is a good copy: the one in
/// memory, which is written anew. Of snapshots memory often has newer values: then it is told, so
/// that who needs them hears of it before. Entries of the log are not read: they go with the next
/// flush.
/// Threads: damages any; all others one, that of the disk.
class Scrubber {
 public:
  /// All that is referred to must outlive this.
  Scrubber(ScrubSchedule schedule,
           const BucketTable& table,
           const BucketStore& store,
           Snapshots& snapshots,
           StorageQueue& queue,
           DirtyShards& dirty);

  /// Reads one value; see ParameterServer::Scrub.
  void Scrub();
  [[nodiscard]] Clock::TimePoint DueAt() const { return schedule_.DueAt(); }
  [[nodiscard]] const ScrubTotals& totals() const { return totals_; }

  /// Writes a copy that cannot be read anew, from what memory holds; nullopt if it may not be read
  /// here. Errors: those of the store; DataLoss if a writer needs the copy and nobody can have it
  /// from here.
  absl::Status Repair(std::uint64_t snapshot,
                      BucketId bucket,
                      const UnreadableCopy& copy,
                      const std::optional<Bucket::Content>& content);

  /// Returns what was found damaged since the start, with its file.
  [[nodiscard]] std::vector<std::string> damages() const { return damages_.texts(); }

 private:
  void BeginPass();
  void NoteDamage(std::string_view problem, std::string_view then);
  [[nodiscard]] bool IsStored(BucketId bucket) const;
  absl::Status ScrubShard(ShardId shard);
  absl::Status ScrubRecords(BucketId bucket);
  void ScrubCopy(const ScrubbedValue& value);

  ScrubSchedule schedule_;
  const BucketTable& table_;
  const BucketStore& store_;
  Snapshots& snapshots_;
  StorageQueue& queue_;
  DirtyShards& dirty_;
  ScrubTotals totals_;
  std::set<std::pair<std::uint64_t, BucketId>> lost_;  // copies, by snapshot; alarms tell of them
  DamageLog damages_;                                  // any thread
};

}  // namespace adamant::parameter_server
