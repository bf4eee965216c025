#include <utility>

#include "services/common/base/check.h"
#include "services/parameter_server/core/serving/parameter_server.h"

// What the replicas ask for (ReplicaHost).
namespace adamant::parameter_server {

void ParameterServer::Send(const Holder& to, PeerMessage message) {
  driver_.SendToPeer(to, std::move(message));
}

void ParameterServer::Propose(const Proposal& proposal) { driver_.Propose(proposal); }

void ParameterServer::Persist(BucketId id, const EntryPtr& entry, std::uint64_t ticket) {
  const Bucket& bucket = *buckets_[id];
  tasks_.persists.push_back({.bucket = id,
                             .life = bucket.life(),
                             .generation = bucket.replica().configuration().generation,
                             .entry = entry,
                             .ticket = ticket});
  driver_.WantStorage();
}

void ParameterServer::Commit(BucketId id, const EntryPtr& entry) {
  Bucket& bucket = *buckets_[id];
  const Epoch epoch = bucket.replica().configuration().epoch;
  Waiting waiting;
  if (auto node = bucket.waiting.extract(entry->lsn); !node.empty()) {
    waiting = std::move(node.mapped());
  }
  for (std::size_t i = 0; i < entry->updates.size(); ++i) {
    const LoggedUpdate& update = entry->updates[i];
    const std::uint32_t position = catalog_.PositionOf(update.shard);
    bucket.Commit(position, update);
    CommittedUpdate committed{.entry = entry, .update = &update, .epoch = epoch};
    if (i < waiting.updates.size()) {
      committed.push = std::move(waiting.updates[i].push);
      committed.index = waiting.updates[i].index;
    }
    const LiveShardPtr& shard = bucket.content().shards[position];
    shard->Enqueue(std::move(committed));
    to_apply_.push_back(shard);
  }
  for (Waiting::Answer& answer : waiting.duplicates) {
    answer.ack.outcome = PushOutcome::kDuplicate;
    answer.ack.epoch = epoch;
    due_.push_back({.push = std::move(answer.push), .index = answer.index, .ack = answer.ack});
  }
  for (std::size_t i = 0; i < entry->puts.size(); ++i) {
    const LoggedPut& put = entry->puts[i];
    bucket.Commit(put);
    RecordDone done = i < waiting.puts.size() ? std::move(waiting.puts[i]) : nullptr;
    if (options_.mode != PersistenceMode::kNone) {
      tasks_.puts.push_back({.bucket = id,
                             .life = bucket.life(),
                             .key = put.key,
                             .version = put.version,
                             .lsn = entry->lsn,
                             .done = std::move(done)});
      driver_.WantStorage();
    } else if (done != nullptr) {
      due_records_.push_back({std::move(done),
                              {.access = Access::kReady,
                               .stored = true,
                               .record = {.version = put.version, .value = {}}}});
    }
  }
}

void ParameterServer::Load(BucketId id, bool create) {
  const Configuration& configuration = buckets_[id]->replica().configuration();
  tasks_.loads[id] = {.life = buckets_[id]->life(),
                      .create = create,
                      .epoch = configuration.epoch,
                      .generation = configuration.generation,
                      .snapshot = configuration.restored_snapshot};
  ForgetStored(id);
  driver_.WantStorage();
}

void ParameterServer::ForgetStored(BucketId id) {
  std::erase_if(stored_.buckets, [&](const StoredBucket& stored) { return stored.bucket == id; });
}

void ParameterServer::Serving(BucketId id) {
  Bucket& bucket = *buckets_[id];
  bucket.StartHead(catalog_.positions());
  driver_.Report(ServingReport(id));
}

BucketReport ParameterServer::ServingReport(BucketId id) const {
  const Bucket& bucket = *buckets_[id];
  return {.bucket = id,
          .epoch = bucket.replica().configuration().epoch,
          .failover = bucket.replica().failover(),
          .generation = bucket.content().generation,
          .updates = bucket.content().updates};
}

void ParameterServer::Demoted(BucketId id) {
  Bucket& bucket = *buckets_[id];
  for (auto& [lsn, waiting] : bucket.waiting) {
    for (auto* answers : {&waiting.updates, &waiting.duplicates}) {
      for (const Waiting::Answer& answer : *answers) {
        Settle(answer, PushOutcome::kNotPrimary);
      }
    }
    for (RecordDone& done : waiting.puts) {
      due_records_.push_back({std::move(done), {.access = Access::kNotPrimary}});
    }
  }
  bucket.waiting.clear();
}

void ParameterServer::Clear(BucketId id) {
  Demoted(id);
  for (const ShardId shard : catalog_.ShardsOf(id)) {
    shard_table_.Set(shard, nullptr);
  }
  buckets_[id]->Clear();
  lost_.erase(id);
  tasks_.loads.erase(id);
  tasks_.installs.erase(id);
  installing_.erase(id);
  std::erase_if(tasks_.persists, [&](const PersistTask& task) { return task.bucket == id; });
}

void ParameterServer::SetContent(BucketId id, Bucket::Content content) {
  for (std::size_t i = 0; i < content.shards.size(); ++i) {
    shard_table_.Set(catalog_.ShardsOf(id)[i], content.shards[i]);
  }
  buckets_[id]->Fill(std::move(content));
}

}  // namespace adamant::parameter_server
