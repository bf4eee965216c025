#include "services/parameter_server/core/records.h"

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

#include "services/common/base/checksum.h"
#include "services/common/base/status_macros.h"

namespace adamant::parameter_server {
namespace {

constexpr std::uint64_t kFormatVersion = 1;

/// Stored before the value; the checksum covers the other fields and the value.
struct Header {
  std::uint64_t format_version;
  std::uint64_t checksum;
  std::uint64_t job_uid;
  std::uint64_t version;
};
constexpr std::size_t kCovered = offsetof(Header, job_uid);

std::string Prefix(BucketId bucket) {
  char prefix[32];
  std::snprintf(prefix, sizeof(prefix), "record/%08x/", bucket);
  return prefix;
}

std::string Encode(std::uint64_t job_uid, std::uint64_t version, std::string_view value) {
  const Header header{kFormatVersion, 0, job_uid, version};
  std::string stored(reinterpret_cast<const char*>(&header), sizeof(header));
  stored += value;
  const std::uint64_t checksum = Checksum(std::as_bytes(std::span(stored)).subspan(kCovered));
  std::memcpy(stored.data() + offsetof(Header, checksum), &checksum, sizeof(checksum));
  return stored;
}

absl::StatusOr<Record> Decode(std::uint64_t job_uid,
                              std::string_view key,
                              std::string_view stored) {
  const std::string name = "stored record " + std::string(key);
  Header header{};
  if (stored.size() < sizeof(header)) {
    return absl::DataLossError(name + " is cut off");
  }
  std::memcpy(&header, stored.data(), sizeof(header));
  if (header.format_version != kFormatVersion) {
    return absl::FailedPreconditionError(
        name + " has format version " + std::to_string(header.format_version) +
        ", this program reads version " + std::to_string(kFormatVersion));
  }
  if (header.checksum != Checksum(std::as_bytes(std::span(stored)).subspan(kCovered))) {
    return absl::DataLossError(name + " fails its checksum");
  }
  if (header.job_uid != job_uid) {
    return absl::FailedPreconditionError(name + " belongs to job " +
                                         std::to_string(header.job_uid) + ", not to " +
                                         std::to_string(job_uid));
  }
  return Record{header.version, std::string(stored.substr(sizeof(header)))};
}

}  // namespace

Records::Records(std::uint64_t job_uid, std::uint32_t buckets, storage::KvStore& store)
    : job_uid_(job_uid), buckets_(buckets), store_(store) {}

std::string Records::StoredKey(std::string_view key) const {
  return Prefix(BucketOfRecord(key, buckets_)) + std::string(key);
}

absl::Status Records::Load(BucketId bucket) {
  const std::string prefix = Prefix(bucket);
  std::map<std::string, Record, std::less<>> loaded;
  absl::Status problem;
  ADAMANT_RETURN_IF_ERROR(
      store_.Scan(prefix, [&](std::string_view stored_key, std::string_view stored) {
        const std::string_view key = stored_key.substr(prefix.size());
        auto record = Decode(job_uid_, key, stored);
        problem = record.status();
        if (record.ok()) {
          loaded.emplace(key, *std::move(record));
        }
        return problem.ok();
      }));
  ADAMANT_RETURN_IF_ERROR(problem);
  const MutexLock lock(mutex_);
  records_.merge(loaded);
  return absl::OkStatus();
}

Record Records::Get(std::string_view key) const {
  const MutexLock lock(mutex_);
  const auto record = records_.find(key);
  return record == records_.end() ? Record{} : record->second;
}

absl::StatusOr<PutResult> Records::Put(std::string_view key,
                                       std::uint64_t expected,
                                       std::string_view value) {
  if (key.empty() || key.size() > kMaxKeyBytes || value.size() > kMaxValueBytes) {
    return absl::InvalidArgumentError(
        "a record has a key of 1 to 256 bytes and at most 1 MiB; this "
        "one has " +
        std::to_string(key.size()) + " and " + std::to_string(value.size()) + " bytes");
  }
  const MutexLock put(put_mutex_);
  const std::uint64_t current = Get(key).version;
  if (current != expected) {
    return PutResult{.stored = false, .version = current};
  }
  ADAMANT_RETURN_IF_ERROR(
      store_.Write({{.key = StoredKey(key), .value = Encode(job_uid_, expected + 1, value)}}));
  const MutexLock lock(mutex_);
  records_.insert_or_assign(std::string(key), Record{expected + 1, std::string(value)});
  return PutResult{.stored = true, .version = expected + 1};
}

}  // namespace adamant::parameter_server
