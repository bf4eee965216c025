#include "services/common/checkpoint/snapshot_store.h"

#include <array>
#include <cstddef>
#include <string_view>

#include "services/common/base/status_macros.h"
#include "services/common/checkpoint/snapshot_format.h"

namespace adamant::checkpoint {

SnapshotStore::SnapshotStore(std::uint64_t job_uid, storage::KvStore& store)
    : job_uid_(job_uid), store_(store) {}

absl::Status SnapshotStore::KeepOnly(const std::set<std::uint64_t>& snapshots) {
  std::vector<storage::Change> changes;
  std::string begin;
  const auto erase_up_to = [&](const std::string& end) {
    changes.push_back({.key = begin, .value = "", .erase = true, .end = end});
  };
  for (const std::size_t kind : {0, 1}) {
    for (const std::uint64_t snapshot : snapshots) {
      const std::string kept = SnapshotPrefixes(snapshot)[kind];
      erase_up_to(kept);
      begin = EndOf(kept);
    }
  }
  erase_up_to(EndOf(""));
  ADAMANT_RETURN_IF_ERROR(store_.Write(changes));
  return store_.Flush();
}

absl::StatusOr<std::vector<std::pair<std::uint64_t, BucketId>>> SnapshotStore::All() const {
  std::vector<std::pair<std::uint64_t, BucketId>> copies;
  ADAMANT_RETURN_IF_ERROR(store_.Scan(kMarkPrefix, [&](std::string_view key, std::string_view) {
    if (const auto copy = ParseMarkKey(key)) {
      copies.push_back(*copy);
    }
    return true;
  }));
  return copies;
}

absl::StatusOr<std::optional<protocol::SnapshotBucket>> SnapshotStore::Find(std::uint64_t snapshot,
                                                                            BucketId bucket) const {
  const auto mark = store_.Get(MarkKey(snapshot, bucket));
  if (absl::IsNotFound(mark.status())) {
    return std::nullopt;
  }
  ADAMANT_RETURN_IF_ERROR(mark.status());
  ADAMANT_ASSIGN_OR_RETURN(const protocol::SnapshotBucket about, DecodeMark(bucket, *mark));
  return about;
}

absl::StatusOr<std::optional<StoredShard>> SnapshotStore::ReadShard(
    std::uint64_t snapshot, BucketId bucket, const ShardIdentity& identity) const {
  ADAMANT_ASSIGN_OR_RETURN(const auto about, Find(snapshot, bucket));
  if (!about.has_value()) {
    return std::nullopt;
  }
  auto stored = store_.Get(CopyPrefix(snapshot, bucket) + LiveShardKey(identity.shard));
  if (absl::IsNotFound(stored.status())) {
    return std::nullopt;
  }
  ADAMANT_RETURN_IF_ERROR(stored.status());
  StoredShard shard{.bytes = std::make_shared<const std::string>(*std::move(stored)), .record = {}};
  ADAMANT_ASSIGN_OR_RETURN(shard.record, DecodeShard(identity, *shard.bytes));
  return shard;
}

absl::Status SnapshotStore::FindComplete(std::uint64_t snapshot, BucketId bucket) const {
  ADAMANT_ASSIGN_OR_RETURN(const auto about, Find(snapshot, bucket));
  return about.has_value() ? absl::OkStatus()
                           : absl::NotFoundError("bucket " + std::to_string(bucket) +
                                                 " is not in snapshot " + std::to_string(snapshot));
}

absl::StatusOr<ShardContent> SnapshotStore::LoadShard(std::uint64_t snapshot,
                                                      BucketId bucket,
                                                      const ShardIdentity& identity) const {
  ADAMANT_RETURN_IF_ERROR(FindComplete(snapshot, bucket));
  ADAMANT_ASSIGN_OR_RETURN(const std::string stored,
                           store_.Get(CopyPrefix(snapshot, bucket) + LiveShardKey(identity.shard)));
  return DecodeContent(identity, stored);
}

absl::StatusOr<RecordMap> SnapshotStore::LoadRecords(std::uint64_t snapshot,
                                                     BucketId bucket) const {
  ADAMANT_RETURN_IF_ERROR(FindComplete(snapshot, bucket));
  return checkpoint::LoadRecords(job_uid_, bucket, store_, CopyPrefix(snapshot, bucket));
}

}  // namespace adamant::checkpoint
