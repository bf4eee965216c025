#include "tests/simulation/replication/checker.h"

#include <algorithm>
#include <utility>

namespace adamant::replication_simulation {
namespace {

using Role = ps::Replica::Role;

ps::Holder ToHolder(const controller::Holder& holder) { return {holder.slot, holder.incarnation}; }

bool Has(const ps::Replica& replica, const ps::Entry& entry) {
  if (entry.lsn <= replica.committed()) {
    return true;
  }
  return entry.lsn <= replica.prepared() &&
         replica.log()[entry.lsn - replica.committed() - 1]->origin == entry.origin;
}

}  // namespace

Checker::Checker(Scheduler& scheduler, simulation::Violations& violations, const Setup& setup)
    : scheduler_(scheduler), violations_(violations), setup_(setup), buckets_(setup.buckets) {
  for (BucketHistory& each : buckets_) {
    each.shards.resize(setup.shards);
  }
}

void Checker::Report(const std::string& what, std::uint32_t bucket, const ps::Holder& holder) {
  violations_.Report(what + " (bucket " + std::to_string(bucket) + ", server-" +
                     std::to_string(holder.slot) + "#" + std::to_string(holder.incarnation) + ")");
}

// --- Records

void Checker::Stored(std::uint64_t term, const std::vector<controller::Bucket>& records) {
  if (term < term_) {
    violations_.Report("I10: the controller of term " + std::to_string(term) +
                       " changes records in term " + std::to_string(term_));
  }
  term_ = std::max(term_, term);
  for (std::uint32_t bucket = 0; bucket < records.size(); ++bucket) {
    if (records[bucket] != buckets_[bucket].record) {
      Tell(bucket, records[bucket]);
      CheckChange(bucket, records[bucket]);
      buckets_[bucket].record = records[bucket];
    }
  }
}

void Checker::Tell(std::uint32_t bucket, const controller::Bucket& record) {
  const auto name = [](const controller::Holder& holder) {
    return std::to_string(holder.slot) + "#" + std::to_string(holder.incarnation);
  };
  std::string text = "primary " + name(record.primary) + ", members";
  for (const controller::Holder& member : record.members) {
    text += " " + name(member);
  }
  text += record.learner ? ", learner " + name(*record.learner) : "";
  text += record.leaver ? ", leaver " + name(*record.leaver) : "";
  text += record.heir ? ", heir " + name(*record.heir) : "";
  scheduler_.Record("bucket " + std::to_string(bucket), text, record.generation, record.epoch);
}

void Checker::CheckChange(std::uint32_t bucket, const controller::Bucket& record) {
  BucketHistory& history = buckets_[bucket];
  const controller::Bucket& before = history.record;
  const ps::Holder primary = ToHolder(record.primary);
  if (record.epoch < before.epoch) {
    return Report("I2: an epoch falls", bucket, primary);
  }
  const auto [known, added] = history.primaries.emplace(record.epoch, primary);
  if (known->second != primary) {
    Report("I2: an epoch has two primaries", bucket, primary);
  }
  if (record.epoch == before.epoch || before.epoch == 0) {
    return;
  }
  const auto lives = [&](const controller::Holder& each) { return view_.lives(ToHolder(each)); };
  if (record.generation != before.generation && std::ranges::any_of(before.members, lives)) {
    Report("I12: a bucket is restored although a member lives", bucket, primary);
  }
  for (const controller::Holder& member : before.members) {
    if (record.generation == before.generation && before.created && lives(member) &&
        !record.Has(member) && record.members.size() < setup_.min_in_sync) {
      Report("I14: one that lives leaves fewer than minInSync", bucket, ToHolder(member));
    }
  }
  if (record.generation != before.generation) {
    history.durable = 0;
  }
  CheckDurable(bucket, record);
  if (record.generation != before.generation && std::exchange(history.served, false)) {
    history.last_members.clear();
    for (const controller::Holder& member : before.members) {
      history.last_members.push_back(ToHolder(member));
    }
  }
  for (const controller::Holder& member : record.members) {
    if (record.generation == before.generation && before.created && !before.Has(member)) {
      CheckJoined(bucket, ToHolder(member));
    }
  }
}

void Checker::CheckJoined(std::uint32_t bucket, const ps::Holder& holder) {
  if (!view_.lives(holder)) {
    return;
  }
  const BucketHistory& history = buckets_[bucket];
  const auto origins = history.origins.find(history.record.generation);
  const std::size_t committed = origins == history.origins.end() ? 0 : origins->second.size();
  const ps::Replica* const replica = view_.replica(bucket, holder);
  if (replica == nullptr || replica->prepared() < committed ||
      view_.content(bucket, holder) == nullptr) {
    Report("I9: a server joins that has entries up to " +
               std::to_string(replica == nullptr ? 0 : replica->prepared()) + " of " +
               std::to_string(committed),
           bucket,
           holder);
  }
}

// Whichever of the disks comes back after a loss of power everywhere, it has what workers were told
// to be on all of them.
void Checker::CheckDurable(std::uint32_t bucket, const controller::Bucket& record) {
  const ps::Lsn durable = buckets_[bucket].durable;
  for (const controller::Holder& member : record.members) {
    const ps::Holder holder = ToHolder(member);
    const Disk& disk = view_.disk(holder.slot);
    if (durable == 0 || !view_.lives(holder) || disk.has_lied()) {
      continue;
    }
    const StoredBucket& stored = disk.ReadSynced(bucket);
    const auto has = [&](const ShardState& shard) { return shard.lsn >= durable; };
    if (!stored.complete || stored.generation != record.generation ||
        !std::ranges::all_of(stored.shards, has)) {
      Report("I15: what is durable is not on a member's disk", bucket, holder);
    }
  }
}

std::optional<std::pair<ps::Holder, Clock::TimePoint>> Checker::LastDeath(
    std::uint32_t bucket, const std::map<ps::Holder, Clock::TimePoint>& deaths) const {
  std::optional<std::pair<ps::Holder, Clock::TimePoint>> last;
  for (const ps::Holder& member : buckets_[bucket].last_members) {
    const auto death = deaths.find(member);
    if (death != deaths.end() && (!last.has_value() || death->second > last->second)) {
      last = *death;
    }
  }
  return last;
}

// --- Replicas

void Checker::Watch(std::uint32_t bucket, const ps::Holder& holder, const ps::Replica& replica) {
  BucketHistory& history = buckets_[bucket];
  const ps::Configuration& configuration = replica.configuration();
  if (configuration.epoch == 0) {
    return;
  }
  ps::Epoch& epoch = history.epochs[holder];
  if (configuration.epoch < epoch) {
    Report("I3: an epoch falls", bucket, holder);
  }
  epoch = configuration.epoch;
  const auto primary = history.primaries.find(configuration.epoch);
  if (primary == history.primaries.end() || primary->second != configuration.primary) {
    Report("I2: a server takes another for the primary than the record says", bucket, holder);
  }
  if (replica.IsPrimary() && replica.durable() > history.durable &&
      IsCurrent(bucket, configuration.generation)) {
    history.durable = replica.durable();
    CheckDurable(bucket, history.record);
  }
}

void Checker::Promised(std::uint32_t bucket, const ps::Holder& holder, ps::Epoch epoch) {
  if (epoch < buckets_[bucket].epochs[holder]) {
    Report("I3: a server accepts what belongs to an earlier epoch", bucket, holder);
  }
}

void Checker::Committed(std::uint32_t bucket,
                        const ps::Holder& holder,
                        const ps::Replica& replica,
                        const ps::Entry& entry) {
  std::vector<ps::Epoch>& origins = buckets_[bucket].origins[replica.configuration().generation];
  if (entry.lsn > origins.size() + 1) {
    Report("I7: an entry is committed before the one before it", bucket, holder);
  } else if (entry.lsn <= origins.size() && origins[entry.lsn - 1] != entry.origin) {
    Report(
        "I7: servers commit different entries at lsn " + std::to_string(entry.lsn), bucket, holder);
  }
  if (entry.lsn == origins.size() + 1) {
    origins.push_back(entry.origin);
  }
  if (replica.IsPrimary()) {
    CheckMembers(bucket, replica, entry);
  }
}

void Checker::CheckMembers(std::uint32_t bucket,
                           const ps::Replica& replica,
                           const ps::Entry& entry) {
  const ps::Configuration& configuration = replica.configuration();
  if (configuration.members.size() < setup_.min_in_sync) {
    Report(
        "I4: an entry is committed by fewer than minInSync members", bucket, configuration.primary);
  }
  for (const ps::Holder& member : configuration.members) {
    const ps::Replica* const at = view_.replica(bucket, member);
    if (at == nullptr || at->configuration().epoch != configuration.epoch ||
        member == configuration.primary) {
      continue;
    }
    if (!Has(*at, entry)) {
      Report("I4: an entry is committed that a member lacks", bucket, member);
    } else if (!IsLogged(bucket, member, entry)) {
      Report("I4: an entry is committed that a member has not stored", bucket, member);
    }
  }
}

bool Checker::IsLogged(std::uint32_t bucket,
                       const ps::Holder& holder,
                       const ps::Entry& entry) const {
  const Disk& disk = view_.disk(holder.slot);
  if (!setup_.logged() || disk.has_lied()) {
    return true;
  }
  const StoredBucket& stored =
      setup_.persistence == Persistence::kWalSync ? disk.ReadSynced(bucket) : disk.Read(bucket);
  const auto logged = stored.log.find(entry.lsn);
  return (logged != stored.log.end() && logged->second->origin == entry.origin) ||
         std::ranges::all_of(stored.shards,
                             [&](const ShardState& shard) { return shard.lsn >= entry.lsn; });
}

// --- Updates

void Checker::Applied(std::uint32_t bucket,
                      std::uint32_t shard,
                      const ps::LoggedUpdate& update,
                      const ShardState& state) {
  ShardHistory& history = buckets_[bucket].shards[shard];
  const UpdateKey key{update.writer.slot, update.writer.incarnation, update.sequence};
  const auto text = [&] {
    return " (bucket " + std::to_string(bucket) + ", shard " + std::to_string(shard) + ", writer " +
           std::to_string(update.writer.slot) + "#" + std::to_string(update.writer.incarnation) +
           ", sequence " + std::to_string(update.sequence) + ")";
  };
  if (state.updates <= history.items.size()) {
    if (history.items[state.updates - 1].hash != state.hash) {
      violations_.Report("I7: servers apply different updates" + text());
    }
    return;
  }
  if (state.updates > history.items.size() + 1) {
    return violations_.Report("I7: an update is applied before the one before it" + text());
  }
  if (!history.index.emplace(key, history.items.size()).second) {
    violations_.Report("I6: an update is applied twice" + text());
  }
  history.items.push_back({.key = key, .hash = state.hash});
}

void Checker::Acknowledged(std::uint32_t bucket,
                           std::uint32_t shard,
                           const ps::Writer& writer,
                           std::uint64_t sequence) {
  ShardHistory& history = buckets_[bucket].shards[shard];
  const auto found = history.index.find({writer.slot, writer.incarnation, sequence});
  if (found == history.index.end()) {
    return violations_.Report("I5: an update is acknowledged that is not applied (bucket " +
                              std::to_string(bucket) + ")");
  }
  Item& item = history.items[found->second];
  if (!item.acknowledged) {
    item.acknowledged = true;
    item.acknowledged_at = scheduler_.Now();
    Clock::TimePoint& last = buckets_[bucket].acknowledged_at;
    if (scheduler_.Now() > last + seconds(1)) {
      buckets_[bucket].silences.emplace_back(last, scheduler_.Now());
    }
    last = scheduler_.Now();
    history.acknowledged = std::max(history.acknowledged, found->second + 1);
    ++acknowledged_;
  }
}

bool Checker::HasAcknowledged(std::uint32_t bucket, const Content& content) const {
  for (std::uint32_t shard = 0; shard < setup_.shards; ++shard) {
    if (content.shards[shard].updates < buckets_[bucket].shards[shard].acknowledged) {
      return false;
    }
  }
  return true;
}

void Checker::Serves(std::uint32_t bucket,
                     const ps::Configuration& record,
                     const Content& content) {
  buckets_[bucket].served = true;
  // Who has been replaced and has not heard may come late.
  if (record.epoch == buckets_[bucket].record.epoch && !HasAcknowledged(bucket, content)) {
    Report("I5: a primary lacks an acknowledged update", bucket, record.primary);
  }
}

void Checker::Read(std::uint32_t bucket, const ps::Holder& holder, const Content& content) {
  if (!HasAcknowledged(bucket, content)) {
    Report("I11: a read misses an acknowledged update", bucket, holder);
  }
}

// --- Disks

void Checker::Persisted(std::uint32_t bucket, const Content& content) {
  if (IsCurrent(bucket, content.generation)) {
    Restores(bucket, content);  // else it is of no use any more
  }
}

void Checker::Restores(std::uint32_t bucket, const Content& content) {
  for (std::uint32_t shard = 0; shard < setup_.shards; ++shard) {
    const ShardState& state = content.shards[shard];
    const std::vector<Item>& items = buckets_[bucket].shards[shard].items;
    if (state.updates > items.size() ||
        (state.updates > 0 && items[state.updates - 1].hash != state.hash)) {
      violations_.Report("I8: what is stored of bucket " + std::to_string(bucket) + ", shard " +
                         std::to_string(shard) + " is no prefix of what is committed");
    }
  }
}

// A log may end in what was never committed, in place of what was committed later and is lost.
void Checker::Replayed(std::uint32_t bucket,
                       std::uint32_t shard,
                       const ps::LoggedUpdate& update,
                       const ShardState& state,
                       Clock::TimePoint safe) {
  const std::vector<Item>& items = buckets_[bucket].shards[shard].items;
  if (state.updates <= items.size() && items[state.updates - 1].hash != state.hash) {
    Truncate(bucket, shard, state.updates - 1, safe);
  }
  Applied(bucket, shard, update, state);
}

void Checker::Restored(std::uint32_t bucket, const Content& content, Clock::TimePoint safe) {
  for (std::uint32_t shard = 0; shard < setup_.shards; ++shard) {
    Truncate(bucket, shard, content.shards[shard].updates, safe);
  }
}

void Checker::Truncate(std::uint32_t bucket,
                       std::uint32_t shard,
                       std::size_t updates,
                       Clock::TimePoint safe) {
  ShardHistory& history = buckets_[bucket].shards[shard];
  while (history.items.size() > updates) {
    const Item& item = history.items.back();
    if (item.acknowledged && item.acknowledged_at < safe) {
      violations_.Report("I12: a total loss takes an update of bucket " + std::to_string(bucket) +
                         " that was acknowledged too long before");
    }
    rolled_back_ += item.acknowledged ? 1 : 0;
    history.index.erase(item.key);
    history.items.pop_back();
  }
  history.acknowledged = std::min(history.acknowledged, history.items.size());
  while (history.acknowledged > 0 && !history.items[history.acknowledged - 1].acknowledged) {
    --history.acknowledged;
  }
}

}  // namespace adamant::replication_simulation
