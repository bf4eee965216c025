#include "services/parameter_server/core/snapshots.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/lazy_writer.h"

namespace adamant::parameter_server {
namespace {

/// A marker exists from before the first shard of a snapshot is written until all are removed.
constexpr std::string_view kMarkers = "snapshots/";
constexpr std::string_view kBegun = "1 begun";  // 1: the version of this format
constexpr std::string_view kComplete = "1 complete";

std::string Hex(std::uint64_t snapshot) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(snapshot));
  return text;
}

std::string MarkerKey(std::uint64_t snapshot) { return std::string(kMarkers) + Hex(snapshot); }

/// What all keys of a snapshot's copies begin with.
std::string CopyPrefix(std::uint64_t snapshot) { return "snapshot/" + Hex(snapshot) + "/"; }

std::string CopyKey(std::uint64_t snapshot, ShardId shard) {
  return CopyPrefix(snapshot) + LiveShardKey(shard);
}

}  // namespace

Snapshots::Snapshots(std::uint64_t job_uid, storage::KvStore& store)
    : job_uid_(job_uid), store_(store) {}

absl::StatusOr<bool> Snapshots::Complete(std::uint64_t snapshot) const {
  const auto marker = store_.Get(MarkerKey(snapshot));
  if (absl::IsNotFound(marker.status())) {
    return false;
  }
  ADAMANT_RETURN_IF_ERROR(marker.status());
  if (*marker != kBegun && *marker != kComplete) {
    return absl::FailedPreconditionError("the marker of snapshot " + std::to_string(snapshot) +
                                         " says \"" + *marker + "\", this program reads \"" +
                                         std::string(kBegun) + "\" and \"" +
                                         std::string(kComplete) + "\"");
  }
  return *marker == kComplete;
}

absl::Status Snapshots::Take(std::uint64_t snapshot,
                             std::span<const LiveShardPtr> shards,
                             const std::map<BucketId, RecordMap>& records) {
  ADAMANT_ASSIGN_OR_RETURN(const bool done, Complete(snapshot));
  if (done) {
    return absl::OkStatus();
  }
  ADAMANT_RETURN_IF_ERROR(
      store_.Write({{.key = MarkerKey(snapshot), .value = std::string(kBegun)}}));
  LazyWriter writer(store_);
  for (const LiveShardPtr& shard : shards) {
    std::string record = shard->Encode();
    SealShard(record);
    ADAMANT_RETURN_IF_ERROR(
        writer.Put(CopyKey(snapshot, shard->identity().shard), std::move(record)));
  }
  for (const auto& [bucket, of_bucket] : records) {
    for (const auto& [key, record] : of_bucket) {
      storage::Change change = StoreRecord(job_uid_, bucket, key, record);
      ADAMANT_RETURN_IF_ERROR(
          writer.Put(CopyPrefix(snapshot) + change.key, std::move(change.value)));
    }
  }
  ADAMANT_RETURN_IF_ERROR(writer.Finish());
  return store_.Write({{.key = MarkerKey(snapshot), .value = std::string(kComplete)}});
}

absl::Status Snapshots::Drop(std::uint64_t keep_from, std::span<const std::uint64_t> keep) {
  std::vector<std::uint64_t> dropped;
  ADAMANT_RETURN_IF_ERROR(store_.Scan(kMarkers, [&](std::string_view key, std::string_view) {
    const std::string_view hex = key.substr(kMarkers.size());
    std::uint64_t snapshot = 0;
    const auto parsed = std::from_chars(hex.begin(), hex.end(), snapshot, 16);
    if (parsed.ec == std::errc() && snapshot < keep_from &&
        std::ranges::find(keep, snapshot) == keep.end()) {
      dropped.push_back(snapshot);
    }
    return true;
  }));
  for (const std::uint64_t snapshot : dropped) {
    const std::string prefix = CopyPrefix(snapshot);
    const std::vector<storage::Change> changes = {
        {.key = prefix, .value = "", .erase = true, .end = prefix + "\xff"},
        {.key = MarkerKey(snapshot), .value = "", .erase = true}};
    ADAMANT_RETURN_IF_ERROR(store_.Write(changes));
  }
  return absl::OkStatus();
}

absl::StatusOr<ShardValue> Snapshots::Read(std::uint64_t snapshot,
                                           const ShardIdentity& identity) const {
  ShardValue value{.shard = identity.shard, .outcome = FetchOutcome::kNoSuchSnapshot};
  ADAMANT_ASSIGN_OR_RETURN(const bool complete, Complete(snapshot));
  if (!complete) {
    return value;
  }
  auto stored = store_.Get(CopyKey(snapshot, identity.shard));
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

}  // namespace adamant::parameter_server
