#include "services/common/checkpoint/record.h"

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

#include "services/common/base/checksum.h"
#include "services/common/base/status_macros.h"

namespace adamant::checkpoint {
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
  std::snprintf(prefix, sizeof(prefix), "record/%08x/", bucket.value());
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
    return absl::FailedPreconditionError(
        name + " belongs to job " + std::to_string(header.job_uid) + ", not to " +
        std::to_string(job_uid) + ": give every job its own data folder");
  }
  return Record{header.version, std::string(stored.substr(sizeof(header)))};
}

}  // namespace

storage::Change StoreRecord(std::uint64_t job_uid,
                            BucketId bucket,
                            std::string_view key,
                            const Record& record) {
  return {.key = Prefix(bucket) + std::string(key),
          .value = Encode(job_uid, record.version, record.value)};
}

absl::StatusOr<RecordMap> LoadRecords(std::uint64_t job_uid,
                                      BucketId bucket,
                                      const storage::KvStore& store,
                                      std::string_view copy) {
  const std::string prefix = std::string(copy) + Prefix(bucket);
  RecordMap loaded;
  absl::Status problem;
  ADAMANT_RETURN_IF_ERROR(
      store.Scan(prefix, [&](std::string_view stored_key, std::string_view stored) {
        const std::string_view key = stored_key.substr(prefix.size());
        auto record = Decode(job_uid, key, stored);
        problem = record.status();
        if (record.ok()) {
          loaded.emplace(key, *std::move(record));
        }
        return problem.ok();
      }));
  ADAMANT_RETURN_IF_ERROR(problem);
  return loaded;
}

storage::Change EraseRecords(BucketId bucket) {
  return {.key = Prefix(bucket), .value = "", .erase = true, .end = Prefix(bucket) + "\xff"};
}

}  // namespace adamant::checkpoint
