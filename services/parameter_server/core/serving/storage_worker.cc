#include "services/parameter_server/core/serving/storage_worker.h"

#include <cstddef>
#include <utility>

#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"

namespace adamant::parameter_server {

StorageWorker::StorageWorker(BucketTable& table,
                             StorageQueue& queue,
                             BucketStore& store,
                             BucketLoader& loader,
                             Scrubber& scrubber,
                             const Clock& clock)
    : table_(table),
      queue_(queue),
      store_(store),
      loader_(loader),
      scrubber_(scrubber),
      clock_(clock) {}

absl::Status StorageWorker::Run() {
  StorageTasks tasks = queue_.Take();
  if (tasks.empty()) {
    return absl::OkStatus();
  }
  const absl::Status status = Do(tasks);
  if (absl::IsResourceExhausted(status)) {
    queue_.Return(std::move(tasks));
    queue_.RaiseDiskFull(status);
    return absl::OkStatus();
  }
  queue_.ClearAlarm();
  return status;
}

// What is done is taken off the list, so that the rest can be tried again.
absl::Status StorageWorker::Do(StorageTasks& tasks) {
  ADAMANT_RETURN_IF_ERROR(store_.Unmark(tasks.unmarked));
  tasks.unmarked.clear();
  while (!tasks.loads.empty()) {
    const auto& [bucket, task] = *tasks.loads.begin();
    ADAMANT_RETURN_IF_ERROR(loader_.Load(bucket, task));
    tasks.loads.erase(tasks.loads.begin());
  }
  ADAMANT_RETURN_IF_ERROR(loader_.InstallCopies(tasks.installs));
  tasks.installs.clear();
  ADAMANT_RETURN_IF_ERROR(PersistEntries(tasks.persists));
  tasks.persists.clear();
  ADAMANT_RETURN_IF_ERROR(StorePuts(tasks.puts));
  tasks.puts.clear();
  while (!tasks.unreadable.empty()) {
    const auto& [copy, problem] = *tasks.unreadable.begin();
    const auto& [snapshot, bucket] = copy;
    const auto content = table_.ReadableContent(bucket, clock_.Now());
    ADAMANT_RETURN_IF_ERROR(scrubber_.Repair(snapshot, bucket, problem, content));
    tasks.unreadable.erase(tasks.unreadable.begin());
  }
  return absl::OkStatus();
}

absl::Status StorageWorker::PersistEntries(const std::vector<PersistTask>& persists) {
  if (persists.empty()) {
    return absl::OkStatus();
  }
  std::vector<PersistTask> current;
  for (const PersistTask& task : persists) {
    if (table_.Lives(task.bucket, task.life)) {
      current.push_back(task);
    }
  }
  ADAMANT_RETURN_IF_ERROR(store_.WriteEntries(current));
  ADAMANT_FAILPOINT("log/acknowledge");
  BucketTable::Session session(table_);
  for (const PersistTask& task : persists) {
    session.bucket(task.bucket).replica().Persisted(task.ticket, clock_.Now());
  }
  return absl::OkStatus();
}

absl::Status StorageWorker::StorePuts(const std::vector<PutTask>& puts) {
  if (puts.empty()) {
    return absl::OkStatus();
  }
  std::vector<CommittedRecord> committed;
  std::vector<RecordAnswer> answers;
  {
    const BucketTable::View view(table_);
    for (const PutTask& put : puts) {
      const Bucket& bucket = view.bucket(put.bucket);
      const auto record = bucket.content().records.find(put.key);
      if (record == bucket.content().records.end() || bucket.life() != put.life) {
        answers.push_back({.access = Access::kNotPrimary});
        continue;
      }
      answers.push_back({.access = Access::kReady,
                         .stored = true,
                         .record = {.version = put.version, .value = {}}});
      committed.push_back(
          {.bucket = put.bucket, .key = put.key, .record = record->second, .lsn = put.lsn});
    }
  }
  ADAMANT_RETURN_IF_ERROR(store_.WriteRecords(committed));
  ADAMANT_FAILPOINT("record/answer");
  for (std::size_t i = 0; i < puts.size(); ++i) {
    if (puts[i].done != nullptr) {
      puts[i].done(answers[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace adamant::parameter_server
