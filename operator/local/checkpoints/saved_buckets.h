#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/local/checkpoints/checkpoint_folder.h"
#include "operator/local/model/trained_model.h"
#include "services/common/checkpoint/record.h"
#include "services/common/checkpoint/shard_record.h"
#include "services/common/protocol/buckets.h"

namespace adamant::local {

/// A bucket of a checkpoint, as values.
struct BucketContent {
  protocol::SnapshotBucket about;                ///< without a checksum
  std::vector<checkpoint::ShardContent> shards;  ///< those of the bucket, in the layout's order
  checkpoint::RecordMap records;
};

/// The shards of a bucket, in the layout's order.
std::vector<Shard> ShardsOfBucket(const ShardLayout& layout, BucketId bucket);

/// Reads a bucket of a saved checkpoint of a job whose model is `model`.
/// Errors: those of ReadSavedRecords; DataLoss or FailedPrecondition when a shard or record is
/// damaged, has another format or another size, naming the file.
absl::StatusOr<BucketContent> ReadSavedBucket(const std::filesystem::path& folder,
                                              const SavedCheckpoint& about,
                                              const TrainedModel& model,
                                              BucketId bucket);

}  // namespace adamant::local
