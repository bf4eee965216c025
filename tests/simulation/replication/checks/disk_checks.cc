// What must hold of what is stored.

#include <algorithm>
#include <iterator>
#include <utility>

#include "services/parameter_server/core/storage/entry_record.h"
#include "tests/simulation/replication/checks/checker.h"
#include "tests/simulation/replication/world/inside.h"

namespace adamant::replication_simulation {

std::optional<ps::ShardContent> Checker::ReadShard(const Disk& disk,
                                                   ShardId shard,
                                                   bool synced) const {
  const std::string key = ps::LiveShardKey(shard);
  const auto stored = synced ? disk.store().GetDurable(key) : disk.Get(key);
  if (!stored.ok()) {
    return std::nullopt;
  }
  auto content = ps::DecodeContent(setup_.IdentityOf(shard), *stored);
  return content.ok() ? std::optional(*std::move(content)) : std::nullopt;
}

// Up to this lsn of the generation; 0: as it was when the generation began.
bool Checker::IsStored(
    const Disk& disk, ShardId shard, std::uint64_t generation, ps::Lsn lsn, bool synced) const {
  const auto content = ReadShard(disk, shard, synced);
  return content.has_value() &&
         (lsn == 0 || (content->generation == generation && content->lsn >= lsn));
}

bool Checker::IsLogged(BucketId bucket, const ps::ServerId& server, const ps::Entry& entry) const {
  const Disk& disk = view_.disk(server.slot);
  const bool is_logged = setup_.mode != ps::PersistenceMode::kNone && !entry.puts.empty();
  if ((!setup_.logged() && !is_logged) || disk.has_lied()) {
    return true;
  }
  const bool synced = setup_.mode == ps::PersistenceMode::kWalSync || !entry.puts.empty();
  const std::uint64_t generation = buckets_[bucket].record.generation;
  const std::string key = ps::EraseEntries(bucket, entry.lsn - 1, entry.lsn).key;
  const auto stored = synced ? disk.store().GetDurable(key) : disk.Get(key);
  if (stored.ok()) {
    const auto logged = ps::DecodeEntry(*stored, layout_);
    return logged.ok() && logged->entry->origin == entry.origin;
  }
  const bool puts = std::ranges::all_of(
      entry.puts, [&](const ps::LoggedPut& put) { return records_.IsStored(disk, bucket, put); });
  return puts && std::ranges::all_of(entry.updates, [&](const ps::LoggedUpdate& update) {
           return IsStored(disk, update.shard, generation, entry.lsn, synced);
         });
}

// Whichever of the disks comes back after a loss of power everywhere, it has what workers were told
// to be on all of them.
void Checker::CheckDurable(BucketId bucket, const controller::Configuration& record) {
  BucketHistory& history = buckets_[bucket];
  if (history.durable == 0 || setup_.mode == ps::PersistenceMode::kNone) {
    return;
  }
  const storage::Change mark = ps::MarkBucket(bucket, record.generation);
  const Generation& generation = history.generations[record.generation];
  const auto last_touch = [&](ShardId shard) -> ps::Lsn {
    const auto touching = generation.touching.find(shard);
    if (touching == generation.touching.end()) {
      return 0;
    }
    const auto after = std::ranges::upper_bound(touching->second, history.durable);
    return after == touching->second.begin() ? 0 : *std::prev(after);
  };
  for (const controller::ServerId& replica : record.replicas) {
    const ps::ServerId server{replica.slot, replica.incarnation};
    const Disk& disk = view_.disk(server.slot);
    if (!view_.lives(server) || disk.has_lied()) {
      continue;
    }
    const auto marked = disk.store().GetDurable(mark.key);
    const bool all = std::ranges::all_of(setup_.shards_of[bucket], [&](ShardId shard) {
      return IsStored(disk, shard, record.generation, last_touch(shard), true);
    });
    if (!marked.ok() || *marked != mark.value || !all) {
      Report("I15: what is durable is not on a replica's disk, though workers are alive",
             bucket,
             server);
    }
  }
}

void Checker::Leaves(const ps::ServerId& server, ShardId shard, std::string_view stored) {
  const BucketId bucket = layout_.shards()[shard].bucket;
  const auto content = ps::DecodeContent(setup_.IdentityOf(shard), stored);
  // Of an earlier generation: it is of no use any more. As it comes back: see Restored.
  const ps::Bucket* const at = view_.bucket(bucket, server);
  if (content.ok() && IsCurrent(bucket, content->generation) && at != nullptr &&
      at->replica().role() != ps::Replica::Role::kLoading && !IsPrefix(shard, *content)) {
    Report("I8: what is stored of shard " + std::to_string(shard) +
               " is no prefix of what is committed",
           bucket,
           server);
  }
}

// What the log adds to a shard.
std::vector<Checker::Taken> Checker::Logged(const ps::StoredContent& stored,
                                            const ps::ShardContent& content,
                                            ShardId shard) {
  std::vector<Taken> added;
  ps::SequenceTable sequences = content.sequences;
  for (const ps::StoredEntry& logged : stored.entries) {
    const bool counts =
        content.generation < stored.entries.back().generation || logged.entry->lsn > content.lsn;
    for (const ps::LoggedUpdate& update : logged.entry->updates) {
      if (counts && update.shard == shard &&
          sequences.Admit(update.writer, update.sequence, update.after_loss) ==
              ps::SequenceTable::Verdict::kNext) {
        added.push_back({.key = KeyOf(update.values), .sequence = update.sequence});
      }
    }
  }
  return added;
}

Checker::Branch Checker::FirstOf(ShardId shard, std::size_t updates) const {
  Branch first;
  for (std::size_t i = 0; i < updates; ++i) {
    first.push_back(shards_[shard].items[i].taken);
  }
  return first;
}

// What a stored shard is, as far as that is known; nullopt: nothing that it may be.
std::optional<Checker::Branch> Checker::BranchOf(ShardId shard,
                                                 const ps::ShardContent& content) const {
  if (IsPrefix(shard, content)) {
    return FirstOf(shard, content.version);
  }
  const auto& branches = shards_[shard].branches;
  const auto found = branches.find(HashOf(content));
  return found == branches.end() ? std::nullopt : std::optional(found->second);
}

void Checker::Loads(BucketId id, const ps::StoredContent& stored) {
  for (std::size_t i = 0; i < stored.shards.size(); ++i) {
    const ShardId shard = setup_.shards_of[id][i];
    std::optional<Branch> branch = BranchOf(shard, stored.shards[i]);
    const std::vector<Taken> added = Logged(stored, stored.shards[i], shard);
    if (!branch.has_value() || added.empty()) {
      continue;
    }
    ReferenceShard loaded(setup_.optimiser, stored.shards[i]);
    for (const Taken& update : added) {
      loaded.Apply(update.key, update.sequence);
      branch->push_back(update);
    }
    shards_[shard].branches[HashOf(loaded.content())] = *std::move(branch);
  }
}

// A log may end in what was never committed, in place of what was committed later and is lost. That
// may be on another disk, and come back when this one is lost.
void Checker::Follow(ShardId shard, const Branch& branch, Clock::TimePoint safe) {
  ShardHistory& history = shards_[shard];
  std::size_t same = 0;
  while (same < std::min(branch.size(), history.items.size()) &&
         history.items[same].taken.key == branch[same].key) {
    ++same;
  }
  for (std::size_t i = same; i < history.items.size(); ++i) {
    history.branches[history.items[i].hash] = FirstOf(shard, i + 1);
  }
  Truncate(shard, same, safe);
  for (std::size_t i = same; i < branch.size(); ++i) {
    Append(shard, branch[i]);
  }
}

void Checker::Restored(BucketId id,
                       const ps::StoredContent& stored,
                       const ps::Bucket& bucket,
                       Clock::TimePoint safe) {
  records_.Restored(id, bucket.content().records, LastReplicasLied(id));
  for (std::size_t i = 0; i < stored.shards.size(); ++i) {
    const ShardId shard = setup_.shards_of[id][i];
    std::optional<Branch> branch = BranchOf(shard, stored.shards[i]);
    if (!branch.has_value()) {
      violations_.Report("I8: what comes back of bucket " + std::to_string(id) + ", shard " +
                         std::to_string(shard) + " is no prefix of what was committed");
      return;
    }
    std::ranges::copy(Logged(stored, stored.shards[i], shard), std::back_inserter(*branch));
    Follow(shard, *branch, safe);
    const ps::ShardContent content = ContentOf(*bucket.content().shards[i]);
    if (content.version != shards_[shard].items.size() || !IsPrefix(shard, content)) {
      violations_.Report("I8: bucket " + std::to_string(id) + " is not what was stored of it");
    }
  }
}

// All of the snapshot, and nothing beyond it.
void Checker::WentBack(BucketId id,
                       std::uint32_t slot,
                       std::uint64_t snapshot,
                       const ps::Bucket& bucket) {
  const SnapshotBooks::Entry* const taken = snapshots_.Find(snapshot, slot, id);
  if (taken == nullptr) {
    return violations_.Report("None: bucket " + std::to_string(id) + " comes back from snapshot " +
                              std::to_string(snapshot) + ", which was not taken");
  }
  const auto same = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.version == b.second.version &&
           a.second.value == b.second.value;
  };
  const ps::RecordMap& records = bucket.content().records;
  if (!std::ranges::equal(records, taken->records, same)) {
    violations_.Report("None: the records of bucket " + std::to_string(id) +
                       " are not those of the snapshot");
  }
  records_.Restored(id, records, true);
  for (std::size_t i = 0; i < taken->versions.size(); ++i) {
    const ShardId shard = setup_.shards_of[id][i];
    const ps::ShardContent content = ContentOf(*bucket.content().shards[i]);
    if (content.version != taken->versions[i] || !IsPrefix(shard, content)) {
      violations_.Report("None: bucket " + std::to_string(id) + " is not what the snapshot held");
    }
    Truncate(shard, content.version, Clock::TimePoint::min());
  }
}

void Checker::MadeAnew(BucketId id, const ps::Bucket& bucket) {
  records_.Restored(id, bucket.content().records, true);
  for (const ShardId shard : setup_.shards_of[id]) {
    Truncate(shard, 0, Clock::TimePoint::min());
  }
}

}  // namespace adamant::replication_simulation
