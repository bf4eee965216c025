#include "services/parameter_server/core/storage/snapshots.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "services/common/base/checksum.h"
#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/common/checkpoint/snapshot_format.h"
#include "services/parameter_server/core/storage/lazy_writer.h"

namespace adamant::parameter_server {

// Copies that are marked together: each sync of the disk takes as long as writing some of them, and
// a job may have thousands that hold next to nothing.
class Snapshots::Group {
 public:
  explicit Group(storage::KvStore& store) : store_(store), writer_(store) {}

  absl::Status Put(std::string key, std::string value) {
    any_ = true;
    return writer_.Put(std::move(key), std::move(value));
  }

  void Mark(std::string key, std::string value) {
    marks_.push_back({.key = std::move(key), .value = std::move(value)});
  }

  [[nodiscard]] bool IsFull() const {
    return writer_.bytes() - marked_bytes_ >= kGroupBytes || marks_.size() >= kGroupBuckets;
  }

  // A mark comes after all of its copy.
  absl::Status Complete() {
    if (std::exchange(any_, false)) {
      ADAMANT_RETURN_IF_ERROR(writer_.Finish());
    }
    if (marks_.empty()) {
      return absl::OkStatus();
    }
    ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("snapshot/mark"));
    ADAMANT_RETURN_IF_ERROR(store_.Write(marks_));
    marks_.clear();
    marked_bytes_ = writer_.bytes();
    return absl::OkStatus();
  }

 private:
  static constexpr std::uint64_t kGroupBytes = std::uint64_t{8} << 20;
  static constexpr std::size_t kGroupBuckets = 1024;

  storage::KvStore& store_;
  LazyWriter writer_;
  std::vector<storage::Change> marks_;
  std::uint64_t marked_bytes_ = 0;
  bool any_ = false;  // since the last marks
};

absl::StatusOr<std::vector<SnapshotBucket>> Snapshots::Take(std::uint64_t snapshot,
                                                            std::span<const Item> items) {
  std::vector<SnapshotBucket> taken;
  Group group(store());
  for (const Item& item : items) {
    ADAMANT_ASSIGN_OR_RETURN(taken.emplace_back(), TakeInto(snapshot, item, group));
    if (group.IsFull()) {
      ADAMANT_RETURN_IF_ERROR(group.Complete());
    }
  }
  ADAMANT_RETURN_IF_ERROR(group.Complete());
  return taken;
}

absl::StatusOr<SnapshotBucket> Snapshots::TakeInto(std::uint64_t snapshot,
                                                   const Item& item,
                                                   Group& group) {
  const SnapshotBucket& about = item.about;
  ADAMANT_ASSIGN_OR_RETURN(const auto done, Find(snapshot, about.bucket));
  if (done.has_value() && done->generation == about.generation) {
    return *done;
  }
  ADAMANT_FAILPOINT("snapshot/begin");
  const std::string prefix = checkpoint::CopyPrefix(snapshot, about.bucket);
  const std::string mark = checkpoint::MarkKey(snapshot, about.bucket);
  if (done.has_value() || HasAny(prefix)) {
    ADAMANT_RETURN_IF_ERROR(
        store().Write({{.key = mark, .value = "", .erase = true}, checkpoint::EraseAll(prefix)}));
  }
  checkpoint::ValueChecksums checksums;
  ADAMANT_RETURN_IF_ERROR(
      ForEach(about.bucket, item.source, [&](const std::string& key, std::string value) {
        checksums[key] = Checksum(std::as_bytes(std::span(value)));
        return group.Put(prefix + key, std::move(value));
      }));
  SnapshotBucket taken = about;
  taken.checksum = checkpoint::ChecksumOf(checksums);
  group.Mark(mark, checkpoint::EncodeMark(taken));
  return taken;
}

// What cannot be read is there.
bool Snapshots::HasAny(const std::string& prefix) const {
  bool any = false;
  const absl::Status read = store().Scan(prefix, [&](std::string_view, std::string_view) {
    any = true;
    return false;
  });
  return any || !read.ok();
}

absl::StatusOr<bool> Snapshots::Repair(std::uint64_t snapshot,
                                       BucketId bucket,
                                       const Source& source) {
  ADAMANT_ASSIGN_OR_RETURN(const auto about, Find(snapshot, bucket));
  if (!about.has_value()) {
    return false;
  }
  std::set<std::string> unreadable;
  for (const LiveShardPtr& shard : source.shards) {
    if (!LoadShard(snapshot, bucket, shard->identity()).ok()) {
      unreadable.insert(LiveShardKey(shard->identity().shard));
    }
  }
  const std::string prefix = checkpoint::CopyPrefix(snapshot, bucket);
  checkpoint::ValueChecksums checksums;
  std::map<std::string, std::string> anew;
  ADAMANT_RETURN_IF_ERROR(ForEach(bucket, source, [&](const std::string& key, std::string value) {
    const auto stored = store().Get(prefix + key);
    if (absl::IsNotFound(stored.status()) && !unreadable.contains(key)) {
      return absl::OkStatus();  // a record that was made later
    }
    const bool is_good = stored.ok() && !unreadable.contains(key);
    checksums[key] = Checksum(std::as_bytes(std::span(is_good ? *stored : value)));
    if (!is_good) {
      anew.emplace(prefix + key, std::move(value));
    }
    return absl::OkStatus();
  }));
  if (checkpoint::ChecksumOf(checksums) != about->checksum) {
    return false;
  }
  LazyWriter writer(store());
  for (auto& [key, value] : anew) {
    ADAMANT_RETURN_IF_ERROR(writer.Put(key, std::move(value)));
  }
  ADAMANT_RETURN_IF_ERROR(writer.Finish());
  return true;
}

absl::Status Snapshots::ForEach(BucketId bucket, const Source& source, const Visit& visit) const {
  for (const LiveShardPtr& shard : source.shards) {
    std::string record = shard->Encode();
    SealShard(record);
    ADAMANT_RETURN_IF_ERROR(visit(LiveShardKey(shard->identity().shard), std::move(record)));
  }
  for (const auto& [key, record] : source.records) {
    storage::Change change = StoreRecord(job_uid(), bucket, key, record);
    ADAMANT_RETURN_IF_ERROR(visit(change.key, std::move(change.value)));
  }
  return absl::OkStatus();
}

absl::Status Snapshots::Drop(std::uint64_t keep_from, std::span<const std::uint64_t> keep) {
  ADAMANT_ASSIGN_OR_RETURN(const auto copies, All());
  std::set<std::uint64_t> dropped;
  for (const auto& [snapshot, bucket] : copies) {
    if (snapshot < keep_from && std::ranges::find(keep, snapshot) == keep.end()) {
      dropped.insert(snapshot);
    }
  }
  for (const std::uint64_t snapshot : dropped) {
    ADAMANT_FAILPOINT("snapshot/drop");
    const auto [copies_prefix, marks_prefix] = checkpoint::SnapshotPrefixes(snapshot);
    ADAMANT_RETURN_IF_ERROR(
        store().Write({checkpoint::EraseAll(copies_prefix), checkpoint::EraseAll(marks_prefix)}));
  }
  return absl::OkStatus();
}

absl::StatusOr<ShardValue> Snapshots::Read(std::uint64_t snapshot,
                                           BucketId bucket,
                                           const ShardIdentity& identity) const {
  ShardValue value{{.shard = identity.shard, .outcome = FetchOutcome::kNoSuchSnapshot}};
  ADAMANT_ASSIGN_OR_RETURN(const auto stored, ReadShard(snapshot, bucket, identity));
  if (stored.has_value()) {
    value.outcome = FetchOutcome::kFound;
    value.version = stored->record.version;
    value.values = stored->record.values;
    value.owner = stored->bytes;
  }
  return value;
}

}  // namespace adamant::parameter_server
