#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/base/ids.h"
#include "services/common/storage/kv_store.h"

// Small named values that are part of a bucket, as they are stored.
namespace adamant::checkpoint {

/// A value and how often it has been written.
struct Record {
  std::uint64_t version = 0;  ///< 0: there is none
  std::string value;
};

using RecordMap = std::map<std::string, Record, std::less<>>;

/// The record as it is stored: under which key, and with its checksum.
storage::Change StoreRecord(std::uint64_t job_uid,
                            BucketId bucket,
                            std::string_view key,
                            const Record& record);

/// The stored records of a bucket. `copy`: what the keys of a copy begin with; empty for the live
/// bucket.
/// Errors: FailedPrecondition for an unknown format version or another job's record; DataLoss for a
/// corrupt one; those of KvStore::Scan.
absl::StatusOr<RecordMap> LoadRecords(std::uint64_t job_uid,
                                      BucketId bucket,
                                      const storage::KvStore& store,
                                      std::string_view copy = "");

/// Erases all stored records of a bucket.
storage::Change EraseRecords(BucketId bucket);

}  // namespace adamant::checkpoint
