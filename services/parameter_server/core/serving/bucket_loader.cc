#include "services/parameter_server/core/serving/bucket_loader.h"

#include <cstddef>
#include <string>
#include <utility>

#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"

namespace adamant::parameter_server {

BucketLoader::BucketLoader(BucketTable& table,
                           BucketStore& store,
                           const Snapshots& snapshots,
                           StoredState& stored,
                           CopyTransfer& copies,
                           const Clock& clock)
    : table_(table),
      store_(store),
      snapshots_(snapshots),
      stored_(stored),
      copies_(copies),
      clock_(clock) {}

absl::Status BucketLoader::Load(BucketId id, const LoadTask& task) {
  if (!table_.Lives(id, task.life)) {
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
    const bool is_new = task.create || task.snapshot != 0;
    ADAMANT_RETURN_IF_ERROR(store_.StoreLoaded(id, *content, is_new));
  }
  BucketTable::Session session(table_);
  Bucket& bucket = session.bucket(id);
  const Replica& replica = bucket.replica();
  if (replica.role() != Replica::Role::kLoading ||
      replica.configuration().version != task.configuration_version) {
    return absl::OkStatus();
  }
  if (!content.ok()) {
    bucket.lost = {.bucket = id,
                   .configuration_version = task.configuration_version,
                   .lost = true,
                   .detail = std::string(content.status().message())};
    session.Report(*bucket.lost);
    return absl::OkStatus();
  }
  session.Fill(id, *std::move(content));
  bucket.replica().Loaded(clock_.Now());
  return absl::OkStatus();
}

Bucket::Content BucketLoader::Create(BucketId id, const LoadTask& task) const {
  Bucket::Content content{.generation = task.generation};
  content.sequences.resize(table_.catalog().ShardsOf(id).size());
  for (const ShardId shard : table_.catalog().ShardsOf(id)) {
    content.shards.push_back(table_.catalog().Create(shard, task.generation));
  }
  return content;
}

// What is stored, and in the logged modes what has been logged since.
absl::StatusOr<Bucket::Content> BucketLoader::Restore(BucketId id, const LoadTask& task) {
  ADAMANT_ASSIGN_OR_RETURN(StoredContent stored, stored_.Take(id));
  Bucket::Content content{.generation = task.generation};
  for (std::size_t i = 0; i < stored.shards.size(); ++i) {
    ShardContent& shard = stored.shards[i];
    if (!stored.entries.empty() && shard.generation < stored.entries.back().generation) {
      shard.lsn = 0;  // it counts in an earlier generation
    }
    content.shards.push_back(
        table_.catalog().Make(table_.catalog().ShardsOf(id)[i], std::move(shard)));
  }
  content.records = stored.records;
  for (const StoredEntry& logged : stored.entries) {
    for (const LoggedUpdate& update : logged.entry->updates) {
      content.shards[table_.catalog().PositionOf(update.shard)]->Enqueue(
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

absl::StatusOr<Bucket::Content> BucketLoader::RestoreSnapshot(BucketId id,
                                                              const LoadTask& task) const {
  Bucket::Content content{.generation = task.generation};
  ADAMANT_ASSIGN_OR_RETURN(content.records, snapshots_.LoadRecords(task.snapshot, id));
  for (const ShardId shard_id : table_.catalog().ShardsOf(id)) {
    ADAMANT_ASSIGN_OR_RETURN(
        ShardContent shard,
        snapshots_.LoadShard(task.snapshot, id, table_.catalog().IdentityOf(shard_id)));
    content.shards.push_back(table_.catalog().Make(shard_id, std::move(shard)));
  }
  for (const LiveShardPtr& shard : content.shards) {
    content.updates += shard->version();
    content.sequences.push_back(shard->sequences());
    shard->Rebase(task.generation);
  }
  return content;
}

absl::Status BucketLoader::InstallCopies(const std::map<BucketId, std::uint64_t>& lives) {
  for (const auto& [id, life] : lives) {
    Bucket::Content content;
    ConfigurationVersion origin = 0;
    Lsn committed = 0;
    {
      const BucketTable::View view(table_);
      const Bucket& bucket = view.bucket(id);
      if (bucket.life() != life) {
        continue;
      }
      content = bucket.content();
      origin = bucket.replica().log().committed_origin();
      committed = bucket.replica().log().committed();
    }
    ADAMANT_RETURN_IF_ERROR(store_.StoreCopy(id, content, origin, committed));
    BucketTable::Session session(table_);
    if (session.bucket(id).life() == life) {
      copies_.Installed(session, id);
    }
  }
  return absl::OkStatus();
}

}  // namespace adamant::parameter_server
