#include "operator/local/checkpoints/saved_buckets.h"

#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/checkpoint/snapshot_format.h"
#include "services/common/checkpoint/snapshot_store.h"
#include "services/common/storage/memory_store.h"

namespace adamant::local {
namespace {

// As a parameter server has it in its store.
absl::StatusOr<BucketContent> Decode(const SavedCheckpoint& about,
                                     const TrainedModel& model,
                                     BucketId bucket,
                                     const Records& records) {
  storage::MemoryStore store;
  const std::string prefix = checkpoint::CopyPrefix(about.snapshot, bucket);
  std::vector<storage::Change> changes;
  for (const auto& [key, value] : records) {
    changes.push_back(
        {.key = key == kSavedMark ? checkpoint::MarkKey(about.snapshot, bucket) : prefix + key,
         .value = value});
  }
  ADAMANT_RETURN_IF_ERROR(store.Write(changes));
  const checkpoint::SnapshotStore snapshots(about.job_uid, store);
  ADAMANT_ASSIGN_OR_RETURN(const auto mark, snapshots.Find(about.snapshot, bucket));
  if (!mark) {
    return absl::DataLossError("its mark is missing");
  }
  BucketContent content{.about = *mark, .shards = {}, .records = {}};
  content.about.checksum = 0;
  for (const Shard& shard : ShardsOfBucket(model.layout, bucket)) {
    ADAMANT_ASSIGN_OR_RETURN(
        content.shards.emplace_back(),
        snapshots.LoadShard(about.snapshot, bucket, model.IdentityOf(about.job_uid, shard)));
  }
  ADAMANT_ASSIGN_OR_RETURN(content.records, snapshots.LoadRecords(about.snapshot, bucket));
  return content;
}

}  // namespace

std::vector<Shard> ShardsOfBucket(const ShardLayout& layout, BucketId bucket) {
  std::vector<Shard> shards;
  for (const Shard& shard : layout.shards()) {
    if (shard.bucket == bucket) {
      shards.push_back(shard);
    }
  }
  return shards;
}

absl::StatusOr<BucketContent> ReadSavedBucket(const std::filesystem::path& folder,
                                              const SavedCheckpoint& about,
                                              const TrainedModel& model,
                                              BucketId bucket) {
  const std::string name = SavedBucketName(bucket);
  ADAMANT_ASSIGN_OR_RETURN(const Records records, ReadSavedRecords(folder, about, name));
  absl::StatusOr<BucketContent> content = Decode(about, model, bucket, records);
  if (absl::IsNotFound(content.status())) {
    return absl::DataLossError((folder / name).string() + " lacks a shard");
  }
  if (!content.ok()) {
    return absl::Status(content.status().code(),
                        (folder / name).string() + ": " + std::string(content.status().message()));
  }
  return content;
}

}  // namespace adamant::local
