#include "services/parameter_server/core/storage/snapshots.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "services/common/base/checksum.h"
#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/storage/lazy_writer.h"

namespace adamant::parameter_server {
namespace {

/// A mark says that a bucket's copy is complete, and how the bucket stood.
constexpr std::string_view kMarks = "snapshots/";
constexpr std::string_view kCopies = "snapshot/";  // before the marks, as keys are ordered

/// After all that a key may go on with.
constexpr char kLast[] = "\xff";

std::string Hex(std::uint64_t snapshot) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, snapshot);
  return text;
}

std::string MarkKey(std::uint64_t snapshot, BucketId bucket) {
  char text[16];
  std::snprintf(text, sizeof(text), "/%08x", bucket.value());
  return std::string(kMarks) + Hex(snapshot) + text;
}

/// What all keys of a bucket's copy begin with; the rest are the keys of the live bucket.
std::string CopyPrefix(std::uint64_t snapshot, BucketId bucket) {
  char text[16];
  std::snprintf(text, sizeof(text), "/%08x/", bucket.value());
  return std::string(kCopies) + Hex(snapshot) + text;
}

std::string EncodeMark(const SnapshotBucket& about) {
  char text[128];
  std::snprintf(text,
                sizeof(text),
                "1 %" PRIu64 " %" PRIu64 " %" PRIu64 " %016" PRIx64,
                about.configuration_version.value(),
                about.generation,
                about.updates,
                about.checksum);
  return text;
}

absl::StatusOr<SnapshotBucket> DecodeMark(BucketId bucket, const std::string& text) {
  SnapshotBucket about{.bucket = bucket};
  std::uint64_t version = 0;
  const int read = std::sscanf(text.c_str(),
                               "1 %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNx64,
                               &version,
                               &about.generation,
                               &about.updates,
                               &about.checksum);
  if (read != 4) {
    return absl::FailedPreconditionError("the mark of a snapshot says \"" + text +
                                         "\", this program reads format version 1");
  }
  about.configuration_version = version;
  return about;
}

/// Of the values of a copy, by key.
using Checksums = std::map<std::string, std::uint64_t>;

std::uint64_t ChecksumOf(const Checksums& checksums) {
  std::vector<std::uint64_t> all;
  for (const auto& [key, checksum] : checksums) {
    all.push_back(checksum);
  }
  return Checksum(std::as_bytes(std::span(all)));
}

storage::Change EraseAll(std::string prefix) {
  std::string end = prefix + kLast;
  return {.key = std::move(prefix), .value = "", .erase = true, .end = std::move(end)};
}

}  // namespace

Snapshots::Snapshots(std::uint64_t job_uid, storage::KvStore& store)
    : job_uid_(job_uid), store_(store) {}

absl::StatusOr<std::optional<SnapshotBucket>> Snapshots::Find(std::uint64_t snapshot,
                                                              BucketId bucket) const {
  const auto mark = store_.Get(MarkKey(snapshot, bucket));
  if (absl::IsNotFound(mark.status())) {
    return std::nullopt;
  }
  ADAMANT_RETURN_IF_ERROR(mark.status());
  ADAMANT_ASSIGN_OR_RETURN(const SnapshotBucket about, DecodeMark(bucket, *mark));
  return about;
}

absl::StatusOr<std::vector<std::pair<std::uint64_t, BucketId>>> Snapshots::All() const {
  std::vector<std::pair<std::uint64_t, BucketId>> copies;
  ADAMANT_RETURN_IF_ERROR(store_.Scan(kMarks, [&](std::string_view key, std::string_view) {
    const std::string_view name = key.substr(kMarks.size());
    std::uint64_t snapshot = 0;
    std::uint32_t bucket = 0;
    const auto hex = std::from_chars(name.begin(), name.end(), snapshot, 16);
    if (hex.ec == std::errc() && hex.ptr != name.end() &&
        std::from_chars(hex.ptr + 1, name.end(), bucket, 16).ec == std::errc()) {
      copies.emplace_back(snapshot, bucket);
    }
    return true;
  }));
  return copies;
}

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
  Group group(store_);
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
  const std::string prefix = CopyPrefix(snapshot, about.bucket);
  const std::string mark = MarkKey(snapshot, about.bucket);
  if (done.has_value() || HasAny(prefix)) {
    ADAMANT_RETURN_IF_ERROR(
        store_.Write({{.key = mark, .value = "", .erase = true}, EraseAll(prefix)}));
  }
  Checksums checksums;
  ADAMANT_RETURN_IF_ERROR(
      ForEach(about.bucket, item.source, [&](const std::string& key, std::string value) {
        checksums[key] = Checksum(std::as_bytes(std::span(value)));
        return group.Put(prefix + key, std::move(value));
      }));
  SnapshotBucket taken = about;
  taken.checksum = ChecksumOf(checksums);
  group.Mark(mark, EncodeMark(taken));
  return taken;
}

// What cannot be read is there.
bool Snapshots::HasAny(const std::string& prefix) const {
  bool any = false;
  const absl::Status read = store_.Scan(prefix, [&](std::string_view, std::string_view) {
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
  const std::string prefix = CopyPrefix(snapshot, bucket);
  Checksums checksums;
  std::map<std::string, std::string> anew;
  ADAMANT_RETURN_IF_ERROR(ForEach(bucket, source, [&](const std::string& key, std::string value) {
    const auto stored = store_.Get(prefix + key);
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
  if (ChecksumOf(checksums) != about->checksum) {
    return false;
  }
  LazyWriter writer(store_);
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
    storage::Change change = StoreRecord(job_uid_, bucket, key, record);
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
    ADAMANT_RETURN_IF_ERROR(store_.Write({EraseAll(std::string(kCopies) + Hex(snapshot) + "/"),
                                          EraseAll(std::string(kMarks) + Hex(snapshot) + "/")}));
  }
  return absl::OkStatus();
}

absl::Status Snapshots::KeepOnly(const std::set<std::uint64_t>& snapshots) {
  std::vector<storage::Change> changes;
  std::string begin;
  const auto erase_up_to = [&](const std::string& end) {
    changes.push_back({.key = begin, .value = "", .erase = true, .end = end});
  };
  for (const std::string_view kind : {kCopies, kMarks}) {
    for (const std::uint64_t snapshot : snapshots) {
      const std::string kept = std::string(kind) + Hex(snapshot) + "/";
      erase_up_to(kept);
      begin = kept + kLast;
    }
  }
  erase_up_to(kLast);
  ADAMANT_RETURN_IF_ERROR(store_.Write(changes));
  return store_.Flush();
}

absl::StatusOr<ShardValue> Snapshots::Read(std::uint64_t snapshot,
                                           BucketId bucket,
                                           const ShardIdentity& identity) const {
  ShardValue value{.shard = identity.shard, .outcome = FetchOutcome::kNoSuchSnapshot};
  ADAMANT_ASSIGN_OR_RETURN(const auto about, Find(snapshot, bucket));
  if (!about.has_value()) {
    return value;
  }
  auto stored = store_.Get(CopyPrefix(snapshot, bucket) + LiveShardKey(identity.shard));
  if (absl::IsNotFound(stored.status())) {
    return value;
  }
  ADAMANT_RETURN_IF_ERROR(stored.status());
  const auto bytes = std::make_shared<const std::string>(*std::move(stored));
  ADAMANT_ASSIGN_OR_RETURN(const ShardRecord record, DecodeShard(identity, *bytes));
  value.outcome = FetchOutcome::kFound;
  value.version = record.version;
  value.values = record.values;
  value.owner = bytes;
  return value;
}

absl::Status Snapshots::FindComplete(std::uint64_t snapshot, BucketId bucket) const {
  ADAMANT_ASSIGN_OR_RETURN(const auto about, Find(snapshot, bucket));
  return about.has_value() ? absl::OkStatus()
                           : absl::NotFoundError("bucket " + std::to_string(bucket) +
                                                 " is not in snapshot " + std::to_string(snapshot));
}

absl::StatusOr<ShardContent> Snapshots::LoadShard(std::uint64_t snapshot,
                                                  BucketId bucket,
                                                  const ShardIdentity& identity) const {
  ADAMANT_RETURN_IF_ERROR(FindComplete(snapshot, bucket));
  ADAMANT_ASSIGN_OR_RETURN(const std::string stored,
                           store_.Get(CopyPrefix(snapshot, bucket) + LiveShardKey(identity.shard)));
  return DecodeContent(identity, stored);
}

absl::StatusOr<RecordMap> Snapshots::LoadRecords(std::uint64_t snapshot, BucketId bucket) const {
  ADAMANT_RETURN_IF_ERROR(FindComplete(snapshot, bucket));
  return parameter_server::LoadRecords(job_uid_, bucket, store_, CopyPrefix(snapshot, bucket));
}

}  // namespace adamant::parameter_server
