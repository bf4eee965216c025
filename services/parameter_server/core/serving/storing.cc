#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/parameter_server/core/serving/session.h"
#include "services/parameter_server/core/storage/entry_record.h"
#include "services/parameter_server/core/storage/stored_bucket.h"

// What waits for the disk.
namespace adamant::parameter_server {
namespace {

constexpr auto kRetryAfter = std::chrono::seconds(1);
constexpr auto kKeepRead =
    std::chrono::minutes(1);  // a group that starts together is assigned soon
constexpr Lsn kToTheEnd = std::numeric_limits<Lsn>::max();

}  // namespace

bool ParameterServer::Lives(BucketId id, std::uint64_t life) const {
  const MutexLock lock(mutex_);
  return buckets_[id]->life() == life;
}

absl::Status ParameterServer::ReadStored(const ParallelFor& parallel_for) {
  StoredBuckets stored;
  if (!opened_before_) {  // a write that fails may have marked the store all the same
    ADAMANT_ASSIGN_OR_RETURN(opened_before_,
                             LoadIncarnation(options_.job_uid, options_.self.slot, store_));
  }
  stored.previous_incarnation = *opened_before_;
  ADAMANT_ASSIGN_OR_RETURN(auto marked, MarkedBuckets(store_));
  std::erase_if(marked, [&](BucketId bucket) { return bucket >= layout().buckets(); });
  std::vector<absl::StatusOr<StoredContent>> contents(marked.size());
  parallel_for(marked.size(), [&](std::size_t i) { contents[i] = LoadStored(marked[i]); });
  std::map<BucketId, StoredContent> read;
  for (std::size_t i = 0; i < marked.size(); ++i) {
    if (!contents[i].ok() && !IsContentProblem(contents[i].status())) {
      return contents[i].status();
    }
    stored.buckets.push_back(Describe(marked[i], contents[i]));
    if (contents[i].ok()) {
      read.emplace(marked[i], *std::move(contents[i]));
    }
  }
  for (BucketId bucket = 0; !options_.damage.empty() && bucket < layout().buckets(); ++bucket) {
    stored.buckets.push_back({.bucket = bucket, .complete = false, .detail = options_.damage});
  }
  ADAMANT_FAILPOINT("server/start");
  // What is stored counts only with the mark: it is the proof that whoever opened the folder before
  // has ended.
  const std::uint64_t highest = std::max(stored.previous_incarnation, options_.self.incarnation);
  const absl::Status opened = store_.Write(
      {StoreIncarnation(options_.job_uid, {.slot = options_.self.slot, .incarnation = highest})});
  if (absl::IsResourceExhausted(opened)) {
    RaiseDiskFull(opened);
  }
  ADAMANT_RETURN_IF_ERROR(opened);
  const MutexLock lock(mutex_);
  alarm_.clear();
  stored_ = std::move(stored);
  read_ = std::move(read);
  read_until_ = clock_.Now() + kKeepRead;
  return absl::OkStatus();
}

StoredBuckets ParameterServer::Stored() {
  const MutexLock lock(mutex_);
  return stored_;
}

// --- The tasks

absl::Status ParameterServer::DoStorage() {
  Tasks tasks;
  {
    const MutexLock lock(mutex_);
    tasks = std::exchange(tasks_, {});
  }
  if (tasks.empty()) {
    return absl::OkStatus();
  }
  const absl::Status status = Do(tasks);
  if (absl::IsResourceExhausted(status)) {
    Return(std::move(tasks));
    RaiseDiskFull(status);
    return absl::OkStatus();
  }
  const MutexLock lock(mutex_);
  alarm_.clear();
  return status;
}

void ParameterServer::RaiseDiskFull(const absl::Status& status) {
  const MutexLock lock(mutex_);
  alarm_ = DescribeFull(status);
  storage_not_before_ = clock_.Now() + kRetryAfter;
}

// What is done is taken off the list, so that the rest can be tried again.
absl::Status ParameterServer::Do(Tasks& tasks) {
  ADAMANT_RETURN_IF_ERROR(Unmark(tasks.unmarked));
  tasks.unmarked.clear();
  while (!tasks.loads.empty()) {
    const auto& [bucket, task] = *tasks.loads.begin();
    ADAMANT_RETURN_IF_ERROR(LoadBucket(bucket, task));
    tasks.loads.erase(tasks.loads.begin());
  }
  ADAMANT_RETURN_IF_ERROR(InstallCopies(tasks.installs));
  tasks.installs.clear();
  ADAMANT_RETURN_IF_ERROR(PersistEntries(tasks.persists));
  tasks.persists.clear();
  ADAMANT_RETURN_IF_ERROR(StorePuts(tasks.puts));
  tasks.puts.clear();
  while (!tasks.unreadable.empty()) {
    const auto& [copy, problem] = *tasks.unreadable.begin();
    ADAMANT_RETURN_IF_ERROR(RepairSnapshot(copy.first, copy.second, problem));
    tasks.unreadable.erase(tasks.unreadable.begin());
  }
  return absl::OkStatus();
}

void ParameterServer::Return(Tasks tasks) {
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

Clock::TimePoint ParameterServer::StorageDueAt() const {
  const MutexLock lock(mutex_);
  return tasks_.empty() ? Clock::TimePoint::max() : storage_not_before_;
}

std::string ParameterServer::alarm() const {
  if (std::string alarm = flusher_.alarm(); !alarm.empty()) {
    return alarm;
  }
  const MutexLock lock(mutex_);
  return alarm_;
}

absl::Status ParameterServer::Unmark(const std::set<BucketId>& buckets) {
  std::vector<storage::Change> changes;
  for (const BucketId bucket : buckets) {
    changes.push_back(UnmarkBucket(bucket));
    changes.push_back(EraseRecords(bucket));
    std::ranges::move(EraseLog(bucket), std::back_inserter(changes));
  }
  return changes.empty() ? absl::OkStatus() : store_.Write(changes);
}

// --- Entries and records

absl::Status ParameterServer::PersistEntries(const std::vector<PersistTask>& persists) {
  if (persists.empty()) {
    return absl::OkStatus();
  }
  std::vector<storage::Change> changes;
  bool sync = options_.mode == PersistenceMode::kWalSync;
  for (const PersistTask& task : persists) {
    if (!Lives(task.bucket, task.life)) {
      continue;
    }
    const Lsn lsn = task.entry->lsn;
    if (lsn <= logged_until_[task.bucket]) {
      changes.push_back(EraseEntries(task.bucket, lsn - 1, kToTheEnd));
    }
    logged_until_[task.bucket] = lsn;
    erased_until_[task.bucket] = std::min(erased_until_[task.bucket], lsn - 1);
    changes.push_back(StoreEntry(task.bucket, task.generation, *task.entry));
    sync = sync || !task.entry->puts.empty();  // records do not roll back
  }
  ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("log/write"));
  ADAMANT_RETURN_IF_ERROR(sync ? store_.Write(changes) : store_.WriteLogged(changes));
  ADAMANT_FAILPOINT("log/acknowledge");
  Session session(*this);
  for (const PersistTask& task : persists) {
    buckets_[task.bucket]->replica().Persisted(task.ticket, clock_.Now());
  }
  return absl::OkStatus();
}

absl::Status ParameterServer::StorePuts(const std::vector<StoredPut>& puts) {
  if (puts.empty()) {
    return absl::OkStatus();
  }
  std::vector<storage::Change> changes;
  std::map<BucketId, Lsn> written;
  std::vector<RecordAnswer> answers;
  {
    const MutexLock lock(mutex_);
    for (const StoredPut& put : puts) {
      const RecordMap& records = buckets_[put.bucket]->content().records;
      const auto record = records.find(put.key);
      if (record == records.end() || buckets_[put.bucket]->life() != put.life) {
        answers.push_back({.access = Access::kNotPrimary});
        continue;
      }
      answers.push_back({.access = Access::kReady,
                         .stored = true,
                         .record = {.version = put.version, .value = {}}});
      changes.push_back(StoreRecord(options_.job_uid, put.bucket, put.key, record->second));
      written[put.bucket] = std::max(written[put.bucket], put.lsn);
    }
  }
  // Where only records are logged, the log is done with once they are written.
  if (IsLogged(options_.mode)) {
    written.clear();
  }
  for (const auto& [bucket, lsn] : written) {
    if (lsn > erased_until_[bucket]) {
      changes.push_back(EraseEntries(bucket, erased_until_[bucket], lsn));
    }
  }
  ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("record/write"));
  ADAMANT_RETURN_IF_ERROR(store_.Write(changes));
  for (const auto& [bucket, lsn] : written) {
    erased_until_[bucket] = std::max(erased_until_[bucket], lsn);
  }
  ADAMANT_FAILPOINT("record/answer");
  for (std::size_t i = 0; i < puts.size(); ++i) {
    if (puts[i].done != nullptr) {
      puts[i].done(answers[i]);
    }
  }
  return absl::OkStatus();
}

// --- Write-back

std::vector<ParameterServer::FlushedBucket> ParameterServer::BeginFlush() {
  std::vector<FlushedBucket> flushed;
  std::vector<LiveShardPtr> shards;
  {
    const MutexLock lock(mutex_);
    for (const auto& bucket : buckets_) {
      flushed.push_back({.life = bucket->life(),
                         .epoch = bucket->replica().configuration().epoch,
                         .committed = bucket->replica().committed()});
      shards.insert(shards.end(), bucket->content().shards.begin(), bucket->content().shards.end());
    }
    for (const StoredPut& put : tasks_.puts) {  // is only in the log yet
      Lsn& committed = flushed[put.bucket].committed;
      committed = std::min(committed, put.lsn - 1);
    }
  }
  // What is committed and still queues at a clean shard would not be flushed.
  for (const LiveShardPtr& shard : shards) {
    shard->Drain();
  }
  return flushed;
}

void ParameterServer::EndFlush(std::span<const FlushedBucket> flushed) {
  Session session(*this);
  for (BucketId id = 0; id < flushed.size(); ++id) {
    Bucket& bucket = *buckets_[id];
    if (bucket.life() == flushed[id].life) {
      bucket.replica().Flushed(flushed[id].committed);
      bucket.RaiseDurable(bucket.replica().durable());
    }
  }
}

absl::Status ParameterServer::Flush() {
  std::vector<FlushedBucket> flushed = BeginFlush();
  const std::uint64_t before = flusher_.totals().flushes;
  ADAMANT_RETURN_IF_ERROR(flusher_.Flush());
  if (flusher_.totals().flushes == before) {
    return absl::OkStatus();
  }
  for (BucketId id = 0; id < flushed.size(); ++id) {
    if (!Lives(id, flushed[id].life)) {
      flushed[id].committed = 0;  // its shards may have gone before they were written
    }
  }
  if (!IsDurableAtOnce(options_.mode)) {
    EndFlush(flushed);
  }
  std::vector<storage::Change> changes;
  for (BucketId id = 0; id < flushed.size(); ++id) {
    const auto& [life, epoch, committed] = flushed[id];
    if (IsLogged(options_.mode) && committed > 0 && logged_until_[id] > 0) {
      if (committed > erased_until_[id]) {
        changes.push_back(EraseEntries(id, erased_until_[id], committed));
      }
      changes.push_back(StoreLogEnd(id, epoch, committed));
    }
  }
  ADAMANT_FAILPOINT("flush/erase_log");
  // On a full disk the entries stay until the next flush; they would be skipped by their lsn.
  const absl::Status erased = changes.empty() ? absl::OkStatus() : store_.Write(changes);
  if (erased.ok()) {
    NoteErased(flushed);
  }
  return absl::IsResourceExhausted(erased) ? absl::OkStatus() : erased;
}

void ParameterServer::NoteErased(std::span<const FlushedBucket> flushed) {
  // Where only records are logged, they leave the log when they are written (StorePuts).
  for (BucketId id = 0; IsLogged(options_.mode) && id < flushed.size(); ++id) {
    if (logged_until_[id] > 0) {
      erased_until_[id] = std::max(erased_until_[id], flushed[id].committed);
    }
  }
}

absl::StatusOr<std::vector<SnapshotBucket>> ParameterServer::TakeSnapshot(
    const SnapshotRequest& request) {
  std::vector<std::pair<SnapshotBucket, Bucket::Content>> sources;
  const Clock::TimePoint now = clock_.Now();
  {
    const MutexLock lock(mutex_);
    for (BucketId id = 0; id < buckets_.size(); ++id) {
      const Bucket& bucket = *buckets_[id];
      // By a lease: what another may have acknowledged in its place would be missing for good.
      const bool can_read = bucket.replica().CanRead(now);
      // By a late command it would be copied without what workers send again, and then, as it is of
      // this generation, not once more.
      const std::vector<std::uint64_t>& wanted = request.generations;
      const bool is_wanted = id >= wanted.size() || wanted[id] == bucket.content().generation;
      if (can_read && is_wanted) {
        sources.emplace_back(SnapshotBucket{.bucket = id,
                                            .epoch = bucket.replica().configuration().epoch,
                                            .generation = bucket.content().generation,
                                            .updates = bucket.content().updates},
                             bucket.content());
      } else if (bucket.replica().IsPrimary()) {
        return absl::UnavailableError("bucket " + std::to_string(id) +
                                      (can_read ? " was read back since" : " is not served yet"));
      }
    }
  }
  std::vector<Snapshots::Item> items;
  for (const auto& source : sources) {
    items.push_back({.about = source.first,
                     .source = {.shards = source.second.shards, .records = source.second.records}});
  }
  ADAMANT_ASSIGN_OR_RETURN(std::vector<SnapshotBucket> taken,
                           snapshots_.Take(request.snapshot, items));
  ADAMANT_RETURN_IF_ERROR(snapshots_.Drop(request.keep_from, request.keep));
  return taken;
}

}  // namespace adamant::parameter_server
