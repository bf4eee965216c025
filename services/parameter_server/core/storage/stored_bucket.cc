#include "services/parameter_server/core/storage/stored_bucket.h"

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <string_view>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/storage/entry_record.h"

namespace adamant::parameter_server {
namespace {

constexpr std::string_view kMarks = "bucket/";
constexpr std::string_view kMarkFormatVersion = "1 ";
constexpr char kIncarnationKey[] = "incarnation";

std::string MarkKey(BucketId bucket) {
  char key[24];
  std::snprintf(key, sizeof(key), "bucket/%08x", bucket.value());
  return key;
}

std::string LogEndKey(BucketId bucket) {
  char key[24];
  std::snprintf(key, sizeof(key), "logged/%08x", bucket.value());
  return key;
}

absl::StatusOr<ShardContent> LoadShard(const ShardIdentity& identity,
                                       const storage::KvStore& store) {
  const auto stored = store.Get(LiveShardKey(identity.shard));
  if (absl::IsNotFound(stored.status())) {
    return absl::NotFoundError("stored shard " + std::to_string(identity.shard) + " is missing");
  }
  ADAMANT_RETURN_IF_ERROR(stored.status());
  return DecodeContent(identity, *stored);
}

absl::Status LoadLogEnd(BucketId bucket, const storage::KvStore& store, StoredContent& content) {
  const auto end = store.Get(LogEndKey(bucket));
  if (end.ok()) {
    std::uint64_t version = 0;
    std::sscanf(end->c_str(), "1 %" SCNu64 " %" SCNu64, &version, &content.log_lsn);
    content.log_version = version;
  } else if (!absl::IsNotFound(end.status())) {
    return end.status();
  }
  if (!content.entries.empty()) {
    content.log_version = content.entries.back().entry->origin;
    content.log_lsn = content.entries.back().entry->lsn;
  }
  return absl::OkStatus();
}

// Who has opened a store last.
struct Opened {
  std::uint64_t incarnation = 0;
  std::uint64_t job_uid = 0;
  std::uint32_t slot = 0;
};

// `unsaid`: what older states left out, or all of it, where nobody has opened it.
absl::StatusOr<Opened> LoadOpened(Opened unsaid, const storage::KvStore& store) {
  const auto stored = store.Get(kIncarnationKey);
  if (absl::IsNotFound(stored.status())) {
    return unsaid;
  }
  ADAMANT_RETURN_IF_ERROR(stored.status());
  const char* const end = stored->data() + stored->size();
  const char* after = std::from_chars(stored->data(), end, unsaid.incarnation).ptr;
  if (after != end) {
    after = std::from_chars(after + 1, end, unsaid.job_uid).ptr;
  }
  if (after != end) {
    std::from_chars(after + 1, end, unsaid.slot);
  }
  return unsaid;
}

}  // namespace

storage::Change MarkBucket(BucketId bucket, std::uint64_t generation) {
  return {.key = MarkKey(bucket),
          .value = std::string(kMarkFormatVersion) + std::to_string(generation)};
}

storage::Change UnmarkBucket(BucketId bucket) {
  return {.key = MarkKey(bucket), .value = "", .erase = true};
}

storage::Change StoreLogEnd(BucketId bucket, ConfigurationVersion origin, Lsn lsn) {
  return {.key = LogEndKey(bucket),
          .value = "1 " + std::to_string(origin) + " " + std::to_string(lsn)};
}

storage::Change EraseLogEnd(BucketId bucket) {
  return {.key = LogEndKey(bucket), .value = "", .erase = true};
}

absl::StatusOr<std::uint64_t> LoadMark(BucketId bucket, const storage::KvStore& store) {
  const auto stored = store.Get(MarkKey(bucket));
  if (absl::IsNotFound(stored.status())) {
    return absl::NotFoundError("no complete copy of bucket " + std::to_string(bucket) +
                               " is stored");
  }
  ADAMANT_RETURN_IF_ERROR(stored.status());
  std::uint64_t generation = 0;
  const std::string_view text = *stored;
  if (!text.starts_with(kMarkFormatVersion) ||
      std::from_chars(text.begin() + kMarkFormatVersion.size(), text.end(), generation).ptr !=
          text.end()) {
    return absl::FailedPreconditionError("the mark of bucket " + std::to_string(bucket) +
                                         " says \"" + *stored +
                                         "\", this program reads format version 1");
  }
  return generation;
}

absl::StatusOr<std::vector<BucketId>> MarkedBuckets(const storage::KvStore& store) {
  std::vector<BucketId> buckets;
  ADAMANT_RETURN_IF_ERROR(store.Scan(kMarks, [&](std::string_view key, std::string_view) {
    std::uint32_t bucket = 0;
    if (std::from_chars(key.begin() + kMarks.size(), key.end(), bucket, 16).ptr == key.end()) {
      buckets.emplace_back(bucket);
    }
    return true;
  }));
  return buckets;
}

absl::StatusOr<StoredContent> LoadContent(std::uint64_t job_uid,
                                          BucketId bucket,
                                          const std::vector<ShardIdentity>& shards,
                                          const ShardLayout& layout,
                                          const storage::KvStore& store) {
  StoredContent content;
  ADAMANT_ASSIGN_OR_RETURN(content.generation, LoadMark(bucket, store));
  for (const ShardIdentity& identity : shards) {
    ADAMANT_ASSIGN_OR_RETURN(content.shards.emplace_back(), LoadShard(identity, store));
  }
  ADAMANT_ASSIGN_OR_RETURN(content.records, LoadRecords(job_uid, bucket, store));
  ADAMANT_ASSIGN_OR_RETURN(content.entries, LoadEntries(bucket, layout, store));
  ADAMANT_RETURN_IF_ERROR(LoadLogEnd(bucket, store, content));
  return content;
}

bool IsContentProblem(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status) || absl::IsFailedPrecondition(status);
}

StoredBucket Describe(BucketId bucket, const absl::StatusOr<StoredContent>& content) {
  StoredBucket found{.bucket = bucket, .complete = content.ok()};
  if (!content.ok()) {
    found.detail = std::string(content.status().message());
    return found;
  }
  found.generation = content->generation;
  found.log_version = content->log_version;
  found.log_lsn = content->log_lsn;
  for (const ShardContent& shard : content->shards) {
    found.updates += shard.version;
  }
  return found;
}

absl::StatusOr<std::uint64_t> LoadIncarnation(std::uint64_t job_uid,
                                              std::uint32_t slot,
                                              const storage::KvStore& store) {
  ADAMANT_ASSIGN_OR_RETURN(const Opened opened,
                           LoadOpened({.job_uid = job_uid, .slot = slot}, store));
  const auto& [incarnation, uid, opener] = opened;
  return uid == job_uid && opener == slot ? incarnation : 0;
}

absl::StatusOr<bool> IsOfAnotherJob(std::uint64_t job_uid, const storage::KvStore& store) {
  ADAMANT_ASSIGN_OR_RETURN(const Opened opened, LoadOpened({.job_uid = job_uid}, store));
  return opened.job_uid != job_uid;
}

storage::Change StoreIncarnation(std::uint64_t job_uid, const ServerId& opener) {
  return {.key = kIncarnationKey,
          .value = std::to_string(opener.incarnation) + " " + std::to_string(job_uid) + " " +
                   std::to_string(opener.slot)};
}

}  // namespace adamant::parameter_server
