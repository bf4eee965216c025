#include "operator/local/checkpoints/start_stores.h"

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/checksum.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/checkpoint/snapshot_format.h"
#include "services/common/storage/segments/segment_store.h"

namespace adamant::local {

StartStores::StartStores(std::filesystem::path folder,
                         std::uint64_t job_uid,
                         const TrainedModel& model)
    : folder_(std::move(folder)), job_uid_(job_uid), model_(model) {}

StartStores::~StartStores() = default;

absl::StatusOr<storage::KvStore*> StartStores::StoreOf(std::uint32_t slot) {
  std::unique_ptr<storage::KvStore>& store = stores_[slot];
  if (store == nullptr) {
    const std::filesystem::path folder = folder_ / ("parameter-server-" + std::to_string(slot));
    ADAMANT_RETURN_IF_ERROR(MakeFolder(folder));
    ADAMANT_ASSIGN_OR_RETURN(store, storage::SegmentStore::Open(folder / "shards"));
  }
  return store.get();
}

absl::StatusOr<controller::CheckpointBucket> StartStores::Put(std::uint64_t snapshot,
                                                              std::uint32_t slot,
                                                              const BucketContent& content) {
  ADAMANT_ASSIGN_OR_RETURN(storage::KvStore * store, StoreOf(slot));
  const BucketId bucket = content.about.bucket;
  const std::string prefix = checkpoint::CopyPrefix(snapshot, bucket);
  checkpoint::ValueChecksums checksums;
  const auto put = [&](const std::string& key, std::string value) {
    checksums[key] = Checksum(std::as_bytes(std::span(value)));
    return store->WriteLazily({{.key = prefix + key, .value = std::move(value)}});
  };
  const std::vector<Shard> shards = ShardsOfBucket(model_.layout, bucket);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    std::string record =
        checkpoint::EncodeShard(model_.IdentityOf(job_uid_, shards[i]), content.shards[i]);
    checkpoint::SealShard(record);
    ADAMANT_RETURN_IF_ERROR(put(checkpoint::LiveShardKey(shards[i].id), std::move(record)));
  }
  for (const auto& [key, record] : content.records) {
    storage::Change change = checkpoint::StoreRecord(job_uid_, bucket, key, record);
    ADAMANT_RETURN_IF_ERROR(put(change.key, std::move(change.value)));
  }
  protocol::SnapshotBucket about = content.about;
  about.checksum = checkpoint::ChecksumOf(checksums);
  ADAMANT_RETURN_IF_ERROR(store->Flush());
  ADAMANT_RETURN_IF_ERROR(store->Write(
      {{.key = checkpoint::MarkKey(snapshot, bucket), .value = checkpoint::EncodeMark(about)}}));
  return controller::CheckpointBucket{.slot = slot,
                                      .generation = about.generation,
                                      .updates = about.updates,
                                      .checksum = about.checksum};
}

}  // namespace adamant::local
