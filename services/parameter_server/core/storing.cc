#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>

#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/entry_record.h"
#include "services/parameter_server/core/lazy_writer.h"
#include "services/parameter_server/core/parameter_server.h"
#include "services/parameter_server/core/session.h"
#include "services/parameter_server/core/stored_bucket.h"

// What waits for the disk.
namespace adamant::parameter_server {
namespace {

constexpr auto kRetryAfter = std::chrono::seconds(1);
constexpr Lsn kToTheEnd = std::numeric_limits<Lsn>::max();

/// Whether the problem lies in what is stored, not in reading it.
bool IsContentProblem(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status) || absl::IsFailedPrecondition(status);
}

}  // namespace

bool ParameterServer::logged() const {
  return options_.mode == PersistenceMode::kWal || options_.mode == PersistenceMode::kWalSync;
}

ShardIdentity ParameterServer::IdentityOf(ShardId id) const {
  const Shard& shard = layout_.shards()[id];
  const ParameterOptimiser& optimiser = options_.optimisers[shard.tensor];
  const bool here = optimiser.location == OptimiserLocation::kServer;
  return {.job_uid = options_.job_uid,
          .shard = id,
          .values = shard.size(),
          .state = here ? shard.size() * StatePerWeight(optimiser.kind) : 0};
}

LiveShardPtr ParameterServer::MakeShard(ShardId id, ShardContent content) {
  const Shard& shard = layout_.shards()[id];
  const ShardRule rule{.optimiser = &options_.optimisers[shard.tensor],
                       .begin = shard.begin,
                       .durable_at_once = options_.mode != PersistenceMode::kDelayed};
  return std::make_shared<LiveShard>(IdentityOf(id), rule, std::move(content), dirty_);
}

absl::Status ParameterServer::ReadStored() {
  StoredBuckets stored;
  ADAMANT_ASSIGN_OR_RETURN(stored.previous_incarnation, LoadIncarnation(store_));
  ADAMANT_ASSIGN_OR_RETURN(const auto marked, MarkedBuckets(store_));
  for (const BucketId bucket : marked) {
    if (bucket >= layout_.buckets()) {
      continue;
    }
    std::vector<ShardIdentity> shards;
    for (const ShardId shard : shards_of_[bucket]) {
      shards.push_back(IdentityOf(shard));
    }
    ADAMANT_ASSIGN_OR_RETURN(StoredBucket found,
                             InspectBucket(options_.job_uid, bucket, shards, layout_, store_));
    stored.buckets.push_back(std::move(found));
  }
  ADAMANT_FAILPOINT("server/start");
  // On a full disk the mark of an earlier process stays: it proves less, and nothing false.
  const absl::Status marked_open = store_.Write({StoreIncarnation(options_.self.incarnation)});
  if (!marked_open.ok() && !absl::IsResourceExhausted(marked_open)) {
    return marked_open;
  }
  const MutexLock lock(mutex_);
  stored_ = std::move(stored);
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
    const MutexLock lock(mutex_);
    alarm_ = "disk full: " + std::string(status.message());
    storage_not_before_ = clock_.Now() + kRetryAfter;
    return absl::OkStatus();
  }
  const MutexLock lock(mutex_);
  alarm_.clear();
  return status;
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
  return absl::OkStatus();
}

void ParameterServer::Return(Tasks tasks) {
  const MutexLock lock(mutex_);
  tasks_.unmarked.merge(tasks.unmarked);
  tasks_.loads.merge(tasks.loads);
  tasks_.installs.merge(tasks.installs);
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
    changes.push_back(EraseEntries(bucket, 0, kToTheEnd));
    changes.push_back(EraseLogEnd(bucket));
    logged_until_[bucket] = 0;
  }
  return changes.empty() ? absl::OkStatus() : store_.Write(changes);
}

// --- Creating and loading

absl::Status ParameterServer::LoadBucket(BucketId id, const LoadTask& task) {
  ADAMANT_FAILPOINT("server/load");
  auto content = task.create          ? absl::StatusOr<Bucket::Content>(Create(id, task))
                 : task.snapshot != 0 ? RestoreSnapshot(id, task)
                                      : Restore(id, task);
  if (!content.ok() && !IsContentProblem(content.status())) {
    return content.status();
  }
  if (content.ok()) {
    ADAMANT_RETURN_IF_ERROR(StoreLoaded(id, task, *content));
  }
  Session session(*this);
  Bucket& bucket = *buckets_[id];
  const Replica& replica = bucket.replica();
  if (replica.role() != Replica::Role::kLoading || replica.configuration().epoch != task.epoch) {
    return absl::OkStatus();
  }
  if (!content.ok()) {
    lost_[id] = {.bucket = id,
                 .epoch = task.epoch,
                 .lost = true,
                 .detail = std::string(content.status().message())};
    driver_.Report(lost_[id]);
    return absl::OkStatus();
  }
  SetContent(id, *std::move(content));
  bucket.replica().Loaded(clock_.Now());
  return absl::OkStatus();
}

Bucket::Content ParameterServer::Create(BucketId id, const LoadTask& task) {
  Bucket::Content content{.generation = task.generation};
  content.sequences.resize(shards_of_[id].size());
  for (const ShardId shard_id : shards_of_[id]) {
    const Shard& shard = layout_.shards()[shard_id];
    const ShardIdentity identity = IdentityOf(shard_id);
    ShardContent shard_content{.generation = task.generation,
                               .values = std::vector<float>(identity.values),
                               .state = std::vector<float>(identity.state)};
    InitialiseShard(
        options_.seed, layout_.parameters()[shard.tensor], shard, std::span(shard_content.values));
    content.shards.push_back(MakeShard(shard_id, std::move(shard_content)));
  }
  return content;
}

// What is stored, and in the logged modes what has been logged since.
absl::StatusOr<Bucket::Content> ParameterServer::Restore(BucketId id, const LoadTask& task) {
  ADAMANT_RETURN_IF_ERROR(LoadMark(id, store_).status());
  ADAMANT_ASSIGN_OR_RETURN(const auto entries, LoadEntries(id, layout_, store_));
  Bucket::Content content{.generation = task.generation};
  ADAMANT_ASSIGN_OR_RETURN(content.records, LoadRecords(options_.job_uid, id, store_));
  for (const ShardId shard_id : shards_of_[id]) {
    ADAMANT_ASSIGN_OR_RETURN(ShardContent shard, LoadShard(IdentityOf(shard_id), store_));
    if (!entries.empty() && shard.generation < entries.back().generation) {
      shard.lsn = 0;  // it counts in an earlier generation
    }
    content.shards.push_back(MakeShard(shard_id, std::move(shard)));
  }
  for (const StoredEntry& stored : entries) {
    for (const LoggedUpdate& update : stored.entry->updates) {
      content.shards[position_of_[update.shard]]->Enqueue(
          {.entry = stored.entry, .update = &update});
    }
    for (const LoggedPut& put : stored.entry->puts) {
      Record& record = content.records[put.key];
      if (put.version > record.version) {
        record = {.version = put.version, .value = put.value};
      }
    }
  }
  for (const LiveShardPtr& shard : content.shards) {
    content.updates += shard->version();
    content.sequences.push_back(shard->sequences());
    shard->Rebase(task.generation);
  }
  return content;
}

absl::StatusOr<Bucket::Content> ParameterServer::RestoreSnapshot(BucketId id,
                                                                 const LoadTask& task) {
  Bucket::Content content{.generation = task.generation};
  ADAMANT_ASSIGN_OR_RETURN(content.records, snapshots_.LoadRecords(task.snapshot, id));
  for (const ShardId shard_id : shards_of_[id]) {
    ADAMANT_ASSIGN_OR_RETURN(ShardContent shard,
                             snapshots_.LoadShard(task.snapshot, id, IdentityOf(shard_id)));
    content.shards.push_back(MakeShard(shard_id, std::move(shard)));
  }
  for (const LiveShardPtr& shard : content.shards) {
    content.updates += shard->version();
    content.sequences.push_back(shard->sequences());
    shard->Rebase(task.generation);
  }
  return content;
}

// What came back from live state is stored already, but for its new generation and what had only
// been logged.
absl::Status ParameterServer::StoreLoaded(BucketId id,
                                          const LoadTask& task,
                                          const Bucket::Content& content) {
  if (task.create || task.snapshot != 0 || logged()) {
    return StoreContent(id, content);
  }
  return options_.mode == PersistenceMode::kNone ? absl::OkStatus()
                                                 : store_.Write({MarkBucket(id, task.generation)});
}

// All of a bucket, durably, in place of whatever was stored of it.
absl::Status ParameterServer::StoreContent(BucketId id, const Bucket::Content& content) {
  if (options_.mode == PersistenceMode::kNone) {
    return absl::OkStatus();
  }
  LazyWriter writer(store_);
  for (const LiveShardPtr& shard : content.shards) {
    std::string record = shard->Encode();
    SealShard(record);
    ADAMANT_RETURN_IF_ERROR(writer.Put(LiveShardKey(shard->identity().shard), std::move(record)));
  }
  ADAMANT_RETURN_IF_ERROR(writer.Finish());
  ADAMANT_FAILPOINT("server/mark");
  std::vector<storage::Change> changes = {
      EraseRecords(id), EraseEntries(id, 0, kToTheEnd), EraseLogEnd(id)};
  for (const auto& [key, record] : content.records) {
    changes.push_back(StoreRecord(options_.job_uid, id, key, record));
  }
  changes.push_back(MarkBucket(id, content.generation));
  logged_until_[id] = 0;
  return store_.Write(changes);
}

absl::Status ParameterServer::InstallCopies(const std::set<BucketId>& buckets) {
  for (const BucketId id : buckets) {
    Bucket::Content content;
    {
      const MutexLock lock(mutex_);
      content = buckets_[id]->content();
    }
    ADAMANT_RETURN_IF_ERROR(StoreContent(id, content));
    Session session(*this);
    Installed(id);
  }
  return absl::OkStatus();
}

// --- Entries and records

absl::Status ParameterServer::PersistEntries(const std::vector<PersistTask>& persists) {
  if (persists.empty()) {
    return absl::OkStatus();
  }
  std::vector<storage::Change> changes;
  for (const PersistTask& task : persists) {
    const Lsn lsn = task.entry->lsn;
    if (lsn <= logged_until_[task.bucket]) {
      changes.push_back(EraseEntries(task.bucket, lsn - 1, kToTheEnd));
    }
    logged_until_[task.bucket] = lsn;
    changes.push_back(StoreEntry(task.bucket, task.generation, *task.entry));
  }
  ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("log/write"));
  ADAMANT_RETURN_IF_ERROR(options_.mode == PersistenceMode::kWalSync ? store_.Write(changes)
                                                                     : store_.WriteLogged(changes));
  ADAMANT_FAILPOINT("log/acknowledge");
  Session session(*this);
  for (const PersistTask& task : persists) {
    buckets_[task.bucket]->replica().Persisted(task.entry->origin, task.entry->lsn, clock_.Now());
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
      if (record == records.end()) {
        answers.push_back({.access = Access::kNotPrimary});
        continue;
      }
      answers.push_back({.access = Access::kReady,
                         .stored = true,
                         .record = {.version = record->second.version, .value = {}}});
      changes.push_back(StoreRecord(options_.job_uid, put.bucket, put.key, record->second));
      written[put.bucket] = std::max(written[put.bucket], put.lsn);
    }
  }
  // Where only records are logged, the log is done with once they are written.
  for (const auto& [bucket, lsn] : written) {
    if (!logged()) {
      changes.push_back(EraseEntries(bucket, 0, lsn));
    }
  }
  ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("record/write"));
  ADAMANT_RETURN_IF_ERROR(store_.Write(changes));
  ADAMANT_FAILPOINT("record/answer");
  for (std::size_t i = 0; i < puts.size(); ++i) {
    if (puts[i].done != nullptr) {
      puts[i].done(answers[i]);
    }
  }
  return absl::OkStatus();
}

// --- Write-back

absl::Status ParameterServer::Flush() {
  std::map<BucketId, std::pair<Epoch, Lsn>> committed;
  if (logged()) {
    const MutexLock lock(mutex_);
    for (BucketId id = 0; id < buckets_.size(); ++id) {
      const Replica& replica = buckets_[id]->replica();
      committed[id] = {replica.configuration().epoch, replica.committed()};
    }
  }
  const std::uint64_t before = flusher_.totals().flushes;
  ADAMANT_RETURN_IF_ERROR(flusher_.Flush());
  if (flusher_.totals().flushes == before) {
    return absl::OkStatus();
  }
  // All that was committed had queued at its shards before they were encoded.
  std::vector<storage::Change> changes;
  for (const auto& [id, end] : committed) {
    if (end.second > 0 && logged_until_[id] > 0) {
      changes.push_back(EraseEntries(id, 0, end.second));
      changes.push_back(StoreLogEnd(id, end.first, end.second));
    }
  }
  ADAMANT_FAILPOINT("flush/erase_log");
  // On a full disk the entries stay until the next flush; they would be skipped by their lsn.
  const absl::Status erased = changes.empty() ? absl::OkStatus() : store_.Write(changes);
  return absl::IsResourceExhausted(erased) ? absl::OkStatus() : erased;
}

absl::StatusOr<std::vector<SnapshotBucket>> ParameterServer::TakeSnapshot(
    std::uint64_t snapshot, std::uint64_t keep_from, std::span<const std::uint64_t> keep) {
  std::vector<std::pair<SnapshotBucket, Bucket::Content>> sources;
  {
    const MutexLock lock(mutex_);
    for (BucketId id = 0; id < buckets_.size(); ++id) {
      const Bucket& bucket = *buckets_[id];
      const Replica::Role role = bucket.replica().role();
      if (role == Replica::Role::kServing || role == Replica::Role::kDraining) {
        sources.emplace_back(SnapshotBucket{.bucket = id,
                                            .epoch = bucket.replica().configuration().epoch,
                                            .generation = bucket.content().generation,
                                            .updates = bucket.content().updates},
                             bucket.content());
      } else if (bucket.replica().IsPrimary()) {
        return absl::UnavailableError("bucket " + std::to_string(id) + " is not served yet");
      }
    }
  }
  std::vector<SnapshotBucket> taken;
  for (const auto& [about, content] : sources) {
    ADAMANT_ASSIGN_OR_RETURN(
        taken.emplace_back(),
        snapshots_.Take(snapshot, about, {.shards = content.shards, .records = content.records}));
  }
  ADAMANT_RETURN_IF_ERROR(snapshots_.Drop(keep_from, keep));
  return taken;
}

}  // namespace adamant::parameter_server
