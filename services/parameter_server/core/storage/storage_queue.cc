#include "services/parameter_server/core/storage/storage_queue.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "services/common/base/system/files.h"

namespace adamant::parameter_server {
namespace {

constexpr auto kRetryAfter = std::chrono::seconds(1);

}  // namespace

StorageQueue::StorageQueue(const Clock& clock, Driver& driver) : clock_(clock), driver_(driver) {}

void StorageQueue::Unmark(BucketId bucket) {
  {
    const MutexLock lock(mutex_);
    tasks_.unmarked.insert(bucket);
  }
  driver_.WantStorage();
}

void StorageQueue::Load(BucketId bucket, const LoadTask& task) {
  {
    const MutexLock lock(mutex_);
    tasks_.loads[bucket] = task;
  }
  driver_.WantStorage();
}

void StorageQueue::Persist(PersistTask task) {
  {
    const MutexLock lock(mutex_);
    tasks_.persists.push_back(std::move(task));
  }
  driver_.WantStorage();
}

void StorageQueue::Install(BucketId bucket, std::uint64_t life) {
  {
    const MutexLock lock(mutex_);
    tasks_.installs[bucket] = life;
  }
  driver_.WantStorage();
}

void StorageQueue::Put(std::vector<PutTask> tasks) {
  {
    const MutexLock lock(mutex_);
    std::ranges::move(tasks, std::back_inserter(tasks_.puts));
  }
  driver_.WantStorage();
}

void StorageQueue::Repair(std::uint64_t snapshot, BucketId bucket, const UnreadableCopy& copy) {
  {
    const MutexLock lock(mutex_);
    UnreadableCopy& known = tasks_.unreadable[{snapshot, bucket}];
    known.why = copy.why;
    known.is_needed = known.is_needed || copy.is_needed;
  }
  driver_.WantStorage();
}

void StorageQueue::Forget(BucketId bucket) {
  const MutexLock lock(mutex_);
  tasks_.loads.erase(bucket);
  tasks_.installs.erase(bucket);
  std::erase_if(tasks_.persists, [&](const PersistTask& task) { return task.bucket == bucket; });
}

std::map<BucketId, Lsn> StorageQueue::LowestPuts() const {
  const MutexLock lock(mutex_);
  std::map<BucketId, Lsn> lowest;
  for (const PutTask& put : tasks_.puts) {
    if (put.lsn > 0) {
      const auto [known, is_new] = lowest.emplace(put.bucket, put.lsn);
      known->second = std::min(known->second, put.lsn);
    }
  }
  return lowest;
}

StorageTasks StorageQueue::Take() {
  const MutexLock lock(mutex_);
  return std::exchange(tasks_, {});
}

void StorageQueue::Return(StorageTasks tasks) {
  const MutexLock lock(mutex_);
  tasks_.unmarked.merge(tasks.unmarked);
  tasks_.loads.merge(tasks.loads);
  tasks_.installs.merge(tasks.installs);
  tasks_.unreadable.merge(tasks.unreadable);
  tasks_.persists.insert(tasks_.persists.begin(), tasks.persists.begin(), tasks.persists.end());
  tasks_.puts.insert(tasks_.puts.begin(),
                     std::make_move_iterator(tasks.puts.begin()),
                     std::make_move_iterator(tasks.puts.end()));
}

Clock::TimePoint StorageQueue::DueAt() const {
  const MutexLock lock(mutex_);
  return tasks_.empty() ? Clock::TimePoint::max() : not_before_;
}

void StorageQueue::RaiseDiskFull(const absl::Status& status) {
  const MutexLock lock(mutex_);
  alarm_ = DescribeFull(status);
  not_before_ = clock_.Now() + kRetryAfter;
}

void StorageQueue::ClearAlarm() {
  const MutexLock lock(mutex_);
  alarm_.clear();
}

std::string StorageQueue::alarm() const {
  const MutexLock lock(mutex_);
  return alarm_;
}

}  // namespace adamant::parameter_server
