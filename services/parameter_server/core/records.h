#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/mutex.h"
#include "services/common/storage/kv_store.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::parameter_server {

/// A small value and how often it has been written.
struct Record {
  std::uint64_t version = 0;  ///< 0: there is none
  std::string value;
};

struct PutResult {
  bool stored = false;
  std::uint64_t version = 0;  ///< of the record after the call
};

/// Small named values that change by compare and swap, written through to the store.
/// Threads: any.
class Records {
 public:
  static constexpr std::uint64_t kMaxKeyBytes = 256;
  static constexpr std::uint64_t kMaxValueBytes = std::uint64_t{1} << 20;

  /// `store` must outlive this.
  Records(std::uint64_t job_uid, std::uint32_t buckets, storage::KvStore& store);

  /// Reads the records of a bucket from the store.
  /// Errors: FailedPrecondition for an unknown format version or another job's record; DataLoss for
  /// a corrupt one.
  absl::Status Load(BucketId bucket);

  /// Version 0 when absent.
  [[nodiscard]] Record Get(std::string_view key) const;

  /// Stores `value` if the record's version is `expected` (0: absent), and returns when it is on
  /// disk. Writes wait for each other (a lock is held over the disk); reads do not wait.
  /// Errors: InvalidArgument for an empty or oversized key or value; those of KvStore::Write, and
  /// then nothing has changed.
  absl::StatusOr<PutResult> Put(std::string_view key,
                                std::uint64_t expected,
                                std::string_view value);

 private:
  [[nodiscard]] std::string StoredKey(std::string_view key) const;

  // Constant after construction.
  const std::uint64_t job_uid_;
  const std::uint32_t buckets_;
  storage::KvStore& store_;

  // Guarded. Lock order: put_mutex_ before mutex_.
  Mutex put_mutex_;
  mutable Mutex mutex_;
  std::map<std::string, Record, std::less<>> records_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::parameter_server
