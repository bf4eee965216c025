#include <limits>
#include <string>
#include <utility>

#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/parameter_server/core/serving/session.h"
#include "services/parameter_server/core/storage/entry_record.h"
#include "services/parameter_server/core/storage/lazy_writer.h"
#include "services/parameter_server/core/storage/stored_bucket.h"

// Buckets that are created, that come back from disk, and copies that are put there.
namespace adamant::parameter_server {
namespace {

constexpr Lsn kToTheEnd = std::numeric_limits<Lsn>::max();

}  // namespace

absl::Status ParameterServer::LoadBucket(BucketId id, const LoadTask& task) {
  if (!Lives(id, task.life)) {
    return absl::OkStatus();
  }
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
  content.sequences.resize(catalog_.ShardsOf(id).size());
  for (const ShardId shard : catalog_.ShardsOf(id)) {
    content.shards.push_back(catalog_.Create(shard, task.generation));
  }
  return content;
}

absl::StatusOr<StoredContent> ParameterServer::LoadStored(BucketId id) const {
  return LoadContent(options_.job_uid, id, catalog_.IdentitiesOf(id), layout(), store_);
}

absl::StatusOr<StoredContent> ParameterServer::TakeStored(BucketId id) {
  {
    const MutexLock lock(mutex_);
    if (auto read = read_.extract(id); !read.empty()) {
      return std::move(read.mapped());
    }
  }
  return LoadStored(id);
}

// What is stored, and in the logged modes what has been logged since.
absl::StatusOr<Bucket::Content> ParameterServer::Restore(BucketId id, const LoadTask& task) {
  ADAMANT_ASSIGN_OR_RETURN(StoredContent stored, TakeStored(id));
  Bucket::Content content{.generation = task.generation};
  for (std::size_t i = 0; i < stored.shards.size(); ++i) {
    ShardContent& shard = stored.shards[i];
    if (!stored.entries.empty() && shard.generation < stored.entries.back().generation) {
      shard.lsn = 0;  // it counts in an earlier generation
    }
    content.shards.push_back(catalog_.Make(catalog_.ShardsOf(id)[i], std::move(shard)));
  }
  content.records = stored.records;
  for (const StoredEntry& logged : stored.entries) {
    for (const LoggedUpdate& update : logged.entry->updates) {
      content.shards[catalog_.PositionOf(update.shard)]->Enqueue(
          {.entry = logged.entry, .update = &update});
    }
    for (const LoggedPut& put : logged.entry->puts) {
      const auto committed = stored.records.find(put.key);
      // Of one version what comes later in the log: an entry that is not logged itself leaves there
      // what it overwrites. But nothing in place of what was stored, which was committed.
      if (committed == stored.records.end() || put.version > committed->second.version) {
        content.records[put.key] = {.version = put.version, .value = put.value};
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
  for (const ShardId shard_id : catalog_.ShardsOf(id)) {
    ADAMANT_ASSIGN_OR_RETURN(
        ShardContent shard, snapshots_.LoadShard(task.snapshot, id, catalog_.IdentityOf(shard_id)));
    content.shards.push_back(catalog_.Make(shard_id, std::move(shard)));
  }
  for (const LiveShardPtr& shard : content.shards) {
    content.updates += shard->version();
    content.sequences.push_back(shard->sequences());
    shard->Rebase(task.generation);
  }
  return content;
}

// The shards that came back from live state are stored already, unless updates were logged. Records
// that had only been logged are not, and their log ends with the old generation.
absl::Status ParameterServer::StoreLoaded(BucketId id,
                                          const LoadTask& task,
                                          const Bucket::Content& content) {
  if (task.create || task.snapshot != 0 || IsLogged(options_.mode)) {
    return StoreContent(id, content, EraseLog(id));
  }
  return options_.mode == PersistenceMode::kNone
             ? absl::OkStatus()
             : StoreRecords(id, content.records, task.generation, EraseLog(id));
}

std::vector<storage::Change> ParameterServer::EraseLog(BucketId id) {
  logged_until_[id] = 0;
  erased_until_[id] = 0;
  return {EraseEntries(id, 0, kToTheEnd), EraseLogEnd(id)};
}

// At once with `changes`.
absl::Status ParameterServer::StoreRecords(BucketId id,
                                           const RecordMap& records,
                                           std::uint64_t generation,
                                           std::vector<storage::Change> changes) {
  changes.push_back(EraseRecords(id));
  for (const auto& [key, record] : records) {
    changes.push_back(StoreRecord(options_.job_uid, id, key, record));
  }
  changes.push_back(MarkBucket(id, generation));
  return store_.Write(changes);
}

// All of a bucket, durably, in place of whatever was stored of it.
absl::Status ParameterServer::StoreContent(BucketId id,
                                           const Bucket::Content& content,
                                           std::vector<storage::Change> changes) {
  if (options_.mode == PersistenceMode::kNone) {
    return absl::OkStatus();
  }
  if (!content.shards.empty()) {  // else, of which a job may have thousands, nothing waits for it
    LazyWriter writer(store_);
    for (const LiveShardPtr& shard : content.shards) {
      std::string record = shard->Encode();
      SealShard(record);
      ADAMANT_RETURN_IF_ERROR(writer.Put(LiveShardKey(shard->identity().shard), std::move(record)));
    }
    ADAMANT_RETURN_IF_ERROR(writer.Finish());
  }
  ADAMANT_FAILPOINT("server/mark");
  return StoreRecords(id, content.records, content.generation, std::move(changes));
}

// The log begins with the copy (Unmark): what was accepted while it came is in it already, and need
// not be in the copy.
absl::Status ParameterServer::InstallCopies(const std::map<BucketId, std::uint64_t>& lives) {
  for (const auto& [id, life] : lives) {
    Bucket::Content content;
    std::vector<storage::Change> changes;
    {
      const MutexLock lock(mutex_);
      const Bucket& bucket = *buckets_[id];
      if (bucket.life() != life) {
        continue;
      }
      content = bucket.content();
      if (IsLogged(options_.mode)) {  // else it would rank behind a disk that has less
        const Replica& replica = bucket.replica();
        changes.push_back(StoreLogEnd(id, replica.configuration().epoch, replica.committed()));
      }
    }
    ADAMANT_RETURN_IF_ERROR(StoreContent(id, content, std::move(changes)));
    Session session(*this);
    if (buckets_[id]->life() == life) {
      Installed(id);
    }
  }
  return absl::OkStatus();
}

}  // namespace adamant::parameter_server
