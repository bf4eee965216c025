#include "services/parameter_server/core/serving/replication_effects.h"

#include <cstddef>
#include <utility>

namespace adamant::parameter_server {

ReplicationEffects::ReplicationEffects(BucketTable& table,
                                       StorageQueue& queue,
                                       StoredState& stored,
                                       CopyTransfer& copies,
                                       PersistenceMode mode)
    : table_(table), queue_(queue), stored_(stored), copies_(copies), mode_(mode) {}

void ReplicationEffects::Send(const ServerId& to, PeerMessage message) {
  table_.session().Send(to, std::move(message));
}

void ReplicationEffects::Propose(const Proposal& proposal) { table_.session().Propose(proposal); }

void ReplicationEffects::Persist(BucketId id, const EntryPtr& entry, std::uint64_t ticket) {
  const Bucket& bucket = table_.session().bucket(id);
  queue_.Persist({.bucket = id,
                  .life = bucket.life(),
                  .generation = bucket.replica().configuration().generation,
                  .entry = entry,
                  .ticket = ticket});
}

void ReplicationEffects::Commit(BucketId id, const EntryPtr& entry) {
  Waiting waiting;
  if (auto node = table_.session().bucket(id).waiting.extract(entry->lsn); !node.empty()) {
    waiting = std::move(node.mapped());
  }
  CommitUpdates(id, entry, waiting);
  CommitPuts(id, *entry, waiting);
}

void ReplicationEffects::CommitUpdates(BucketId id, const EntryPtr& entry, Waiting& waiting) {
  BucketTable::Session& session = table_.session();
  Bucket& bucket = session.bucket(id);
  const ConfigurationVersion configuration_version = bucket.replica().configuration().version;
  for (std::size_t i = 0; i < entry->updates.size(); ++i) {
    const LoggedUpdate& update = entry->updates[i];
    const std::uint32_t position = table_.catalog().PositionOf(update.shard);
    bucket.Commit(position, update);
    CommittedUpdate committed{
        .entry = entry, .update = &update, .configuration_version = configuration_version};
    if (i < waiting.updates.size()) {
      committed.push = std::move(waiting.updates[i].push);
      committed.index = waiting.updates[i].index;
    }
    const LiveShardPtr& shard = bucket.content().shards[position];
    shard->Enqueue(std::move(committed));
    session.Apply(shard);
  }
  for (Waiting::Answer& answer : waiting.duplicates) {
    answer.ack.configuration_version = configuration_version;
    session.Settle(answer, PushOutcome::kDuplicate);
  }
}

void ReplicationEffects::CommitPuts(BucketId id, const Entry& entry, Waiting& waiting) {
  BucketTable::Session& session = table_.session();
  Bucket& bucket = session.bucket(id);
  for (std::size_t i = 0; i < entry.puts.size(); ++i) {
    const LoggedPut& put = entry.puts[i];
    bucket.Commit(put);
    RecordDone done = i < waiting.puts.size() ? std::move(waiting.puts[i]) : nullptr;
    if (mode_ != PersistenceMode::kNone) {
      queue_.Put({{.bucket = id,
                   .life = bucket.life(),
                   .key = put.key,
                   .version = put.version,
                   .lsn = entry.lsn,
                   .done = std::move(done)}});
    } else if (done != nullptr) {
      session.Answer(std::move(done),
                     {.access = Access::kReady,
                      .stored = true,
                      .record = {.version = put.version, .value = {}}});
    }
  }
}

void ReplicationEffects::Load(BucketId id, bool create) {
  const Bucket& bucket = table_.session().bucket(id);
  const Configuration& configuration = bucket.replica().configuration();
  stored_.Forget(id);
  queue_.Load(id,
              {.life = bucket.life(),
               .create = create,
               .configuration_version = configuration.version,
               .generation = configuration.generation,
               .snapshot = configuration.restored_snapshot});
}

void ReplicationEffects::Serving(BucketId id) {
  BucketTable::Session& session = table_.session();
  session.bucket(id).StartHead(table_.catalog().positions());
  session.Report(session.bucket(id).ServingReport(id));
  if (mode_ == PersistenceMode::kDelayed) {
    session.FlushSoon();  // what it learns only now to be committed may be acknowledged since long
  }
}

void ReplicationEffects::Demoted(BucketId id) {
  BucketTable::Session& session = table_.session();
  Bucket& bucket = session.bucket(id);
  for (auto& [lsn, waiting] : bucket.waiting) {
    for (auto* answers : {&waiting.updates, &waiting.duplicates}) {
      for (const Waiting::Answer& answer : *answers) {
        session.Settle(answer, PushOutcome::kNotPrimary);
      }
    }
    for (RecordDone& done : waiting.puts) {
      session.Answer(std::move(done), {.access = Access::kNotPrimary});
    }
  }
  bucket.waiting.clear();
}

void ReplicationEffects::StartCopy(BucketId id,
                                   const ServerId& learner,
                                   std::uint64_t copy,
                                   Lsn base) {
  copies_.Start(table_.session(), id, learner, copy, base);
}

void ReplicationEffects::StopCopy(BucketId id) { table_.session().bucket(id).sending.reset(); }

void ReplicationEffects::Learn(BucketId id, const CopyBegin& begin) {
  copies_.Learn(table_.session(), id, begin);
}

void ReplicationEffects::Clear(BucketId id) {
  Demoted(id);
  table_.session().Clear(id);
  queue_.Forget(id);
}

}  // namespace adamant::parameter_server
