#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/parameter_server/core/buckets/records.h"
#include "services/parameter_server/core/driver.h"
#include "services/parameter_server/core/replication/messages.h"

namespace adamant::parameter_server {

// Tasks name the life of the bucket (Bucket::life) that they are for: after it they are void.

/// A committed record is to be stored.
struct PutTask {
  BucketId bucket = 0;
  std::uint64_t life = 0;
  std::string key = {};
  std::uint64_t version = 0;  ///< of this put; others may have followed it by now
  Lsn lsn = 0;                ///< 0: it is written anew, of what was stored before
  RecordDone done = {};       ///< none: nobody waits
};

/// A primary's bucket is to be created or loaded.
struct LoadTask {
  std::uint64_t life = 0;
  bool create = false;
  ConfigurationVersion configuration_version = 0;
  std::uint64_t generation = 0;
  std::uint64_t snapshot = 0;  ///< that it comes back from; 0: from what is live
};

/// An entry is to be logged.
struct PersistTask {
  BucketId bucket = 0;
  std::uint64_t life = 0;
  std::uint64_t generation = 0;
  EntryPtr entry = {};
  std::uint64_t ticket = 0;  ///< of the replica
};

/// A bucket's copy in a snapshot cannot be read.
struct UnreadableCopy {
  absl::Status why;
  bool is_needed = false;  ///< a writer waits for it
};

/// Tasks that wait for the disk, in the order in which they are done.
struct StorageTasks {
  std::set<BucketId> unmarked = {};  ///< whose stored copy no longer counts
  std::map<BucketId, LoadTask> loads = {};
  std::map<BucketId, std::uint64_t> installs = {};  ///< lives: copies that count when on disk
  std::vector<PersistTask> persists = {};
  std::vector<PutTask> puts = {};
  std::map<std::pair<std::uint64_t, BucketId>, UnreadableCopy> unreadable = {};  ///< by snapshot

  [[nodiscard]] bool empty() const {
    return unmarked.empty() && loads.empty() && persists.empty() && installs.empty() &&
           puts.empty() && unreadable.empty();
  }
};

/// Gathers what waits for the disk, and knows whether that is full.
/// Threads: any. Its lock may be taken under the bucket table's, and takes none.
class StorageQueue {
 public:
  /// Both must outlive this. `driver` hears of each task.
  StorageQueue(const Clock& clock, Driver& driver);

  void Unmark(BucketId bucket);
  void Load(BucketId bucket, const LoadTask& task);
  void Persist(PersistTask task);
  void Install(BucketId bucket, std::uint64_t life);
  void Put(std::vector<PutTask> tasks);

  /// Whoever needs it once waits for it until it is taken.
  void Repair(std::uint64_t snapshot, BucketId bucket, const UnreadableCopy& copy);

  /// Drops what is to be loaded, installed and logged of a bucket that has gone.
  void Forget(BucketId bucket);

  /// By bucket: the lowest lsn among the puts that wait; they are only in the log yet.
  [[nodiscard]] std::map<BucketId, Lsn> LowestPuts() const;

  /// Returns all that waits, once.
  StorageTasks Take();

  /// Puts back what could not be done, before what has come since.
  void Return(StorageTasks tasks);

  /// Returns when what waits should be done; TimePoint::max() if nothing does.
  [[nodiscard]] Clock::TimePoint DueAt() const;

  // --- The disk

  /// Raises the alarm; what waits is not due for a while.
  void RaiseDiskFull(const absl::Status& status);
  void ClearAlarm();

  /// Of DescribeFull ("disk full: …"), or empty when all is well.
  [[nodiscard]] std::string alarm() const;

 private:
  // Constant after construction.
  const Clock& clock_;
  Driver& driver_;

  // Guarded.
  mutable Mutex mutex_;
  StorageTasks tasks_ ABSL_GUARDED_BY(mutex_);
  std::string alarm_ ABSL_GUARDED_BY(mutex_);
  Clock::TimePoint not_before_ ABSL_GUARDED_BY(mutex_) = Clock::TimePoint::min();
};

}  // namespace adamant::parameter_server
