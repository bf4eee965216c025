#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/common/base/system/parallel_for.h"
#include "services/common/storage/kv_store.h"
#include "services/parameter_server/core/driver.h"
#include "services/parameter_server/core/storage/bucket_store.h"
#include "services/parameter_server/core/storage/storage_queue.h"

namespace adamant::parameter_server {

/// State of the store when this process opened it.
/// Threads: Read one at a time; the others any. Its lock may be taken under the bucket table's.
class StoredState {
 public:
  /// Server that opens the store.
  struct Opener {
    ServerId self = {};
    std::string damage = {};  ///< why the store is an empty one in place of another; "": it is not
    std::string folder = {};  ///< of the store, for messages
  };

  /// All must outlive this. `queue` hears of a full disk.
  StoredState(Opener opener,
              const BucketStore& buckets,
              storage::KvStore& store,
              StorageQueue& queue,
              const Clock& clock);
  StoredState(const StoredState&) = delete;
  StoredState& operator=(const StoredState&) = delete;

  /// Reads and verifies all, bucket by bucket, and marks the store as opened; see
  /// ParameterServer::ReadStored.
  absl::Status Read(const ParallelFor& parallel_for);

  /// Returns what Read found, without what was forgotten since.
  [[nodiscard]] StoredBuckets Get() const;

  /// A bucket is loaded or learnt: what was found of it is told no more.
  void Forget(BucketId bucket);

  /// All of a bucket: what Read kept, once, else read from the store. Errors: see LoadContent.
  absl::StatusOr<StoredContent> Take(BucketId bucket);

  /// Lets go of what Read kept of a bucket; of all that it has kept long enough.
  void Drop(BucketId bucket);
  void DropOld();

 private:
  void NameFolder(std::string& detail) const;

  // Constant after construction.
  const Opener opener_;
  const BucketStore& buckets_;
  storage::KvStore& store_;
  StorageQueue& queue_;
  const Clock& clock_;

  // Of the thread that reads.
  bool is_of_another_job_ = false;              // as it was found
  std::optional<std::uint64_t> opened_before_;  // by this incarnation of the slot; 0: by none

  // Guarded.
  mutable Mutex mutex_;
  StoredBuckets found_ ABSL_GUARDED_BY(mutex_);
  std::map<BucketId, StoredContent> kept_ ABSL_GUARDED_BY(mutex_);  // as it is on disk
  Clock::TimePoint kept_until_ ABSL_GUARDED_BY(mutex_) = Clock::TimePoint::max();
};

}  // namespace adamant::parameter_server
