#include "services/parameter_server/core/serving/snapshot_taker.h"

#include <string>
#include <utility>

#include "services/common/base/status_macros.h"

namespace adamant::parameter_server {

absl::StatusOr<std::vector<SnapshotBucket>> SnapshotTaker::Take(const TakeSnapshot& request) {
  std::vector<std::pair<SnapshotBucket, Bucket::Content>> sources;
  const Clock::TimePoint now = clock_.Now();
  {
    const BucketTable::View view(table_);
    for (BucketId id = 0; id < view.buckets().size(); ++id) {
      const Bucket& bucket = view.bucket(id);
      // By a lease: what another may have acknowledged in its place would be missing for good.
      const bool can_read = bucket.replica().CanRead(now);
      // By a late command it would be copied without what workers send again, and then, as it is of
      // this generation, not once more.
      const std::vector<std::uint64_t>& wanted = request.generations;
      const bool is_wanted = id >= wanted.size() || wanted[id] == bucket.content().generation;
      if (can_read && is_wanted) {
        sources.emplace_back(
            SnapshotBucket{.bucket = id,
                           .configuration_version = bucket.replica().configuration().version,
                           .generation = bucket.content().generation,
                           .updates = bucket.content().updates},
            bucket.content());
      } else if (bucket.replica().IsPrimary()) {
        return absl::UnavailableError("bucket " + std::to_string(id) +
                                      (can_read ? " was read back since" : " is not served yet"));
      }
    }
  }
  std::vector<Snapshots::Item> items;
  for (const auto& source : sources) {
    items.push_back({.about = source.first,
                     .source = {.shards = source.second.shards, .records = source.second.records}});
  }
  ADAMANT_ASSIGN_OR_RETURN(std::vector<SnapshotBucket> taken,
                           snapshots_.Take(request.snapshot, items));
  ADAMANT_RETURN_IF_ERROR(snapshots_.Drop(request.keep_from, request.keep));
  return taken;
}

}  // namespace adamant::parameter_server
