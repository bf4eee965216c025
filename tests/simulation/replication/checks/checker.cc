#include "tests/simulation/replication/checks/checker.h"

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
    : scheduler_(scheduler),
      violations_(violations),
      setup_(setup),
      layout_(setup.parameters, setup.buckets),
      buckets_(setup.buckets),
      shards_(setup.shards(), ShardHistory(setup.optimiser)),
      records_(violations, setup) {}

void Checker::Report(const std::string& what, ShardId shard, const UpdateKey& key) {
  violations_.Report(what + " (shard " + std::to_string(shard) + ", writer " +
                     std::to_string(key.slot) + "#" + std::to_string(key.incarnation) +
                     ", sequence " + std::to_string(key.sequence) + "; row \"" + setup_.Row() +
                     "\")");
}

void Checker::Report(const std::string& what, BucketId bucket, const ps::Holder& holder) {
  violations_.Report(what + " (bucket " + std::to_string(bucket) + ", server-" +
                     std::to_string(holder.slot) + "#" + std::to_string(holder.incarnation) +
                     "; row \"" + setup_.Row() + "\")");
}

// --- Records

void Checker::Stored(std::uint64_t term, const std::vector<controller::Bucket>& records) {
  if (term < term_) {
    violations_.Report("I10: the controller of term " + std::to_string(term) +
                       " changes records in term " + std::to_string(term_));
  }
  term_ = std::max(term_, term);
  for (BucketId bucket = 0; bucket < records.size(); ++bucket) {
    if (records[bucket] != buckets_[bucket].record) {
      Tell(bucket, records[bucket]);
      CheckChange(bucket, records[bucket]);
      buckets_[bucket].record = records[bucket];
    }
  }
}

void Checker::Tell(BucketId bucket, const controller::Bucket& record) {
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

void Checker::CheckChange(BucketId bucket, const controller::Bucket& record) {
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
  if (record.generation != before.generation) {
    CheckRestore(bucket, record);
  }
  for (const controller::Holder& member : before.members) {
    if (record.generation == before.generation && before.created && lives(member) &&
        !record.Has(member) && record.members.size() < setup_.min_in_sync) {
      Report("I14: one that lives leaves fewer than minInSync", bucket, ToHolder(member));
    }
  }
  CheckDurable(bucket, record);
  for (const controller::Holder& member : record.members) {
    if (record.generation == before.generation && before.created && !before.Has(member)) {
      CheckJoined(bucket, ToHolder(member));
    }
  }
}

void Checker::CheckRestore(BucketId bucket, const controller::Bucket& record) {
  BucketHistory& history = buckets_[bucket];
  if (!IsLost(bucket)) {
    Report("I12: a bucket is restored although a member lives", bucket, ToHolder(record.primary));
  }
  history.durable = 0;
  if (std::exchange(history.served, false)) {
    history.last_members.clear();
    for (const controller::Holder& member : history.record.members) {
      history.last_members.push_back(ToHolder(member));
    }
  }
}

bool Checker::IsLost(BucketId bucket) const {
  return std::ranges::none_of(buckets_[bucket].record.members, [&](const controller::Holder& each) {
    return view_.lives(ToHolder(each));
  });
}

void Checker::CheckJoined(BucketId bucket, const ps::Holder& holder) {
  if (!view_.lives(holder)) {
    return;
  }
  const BucketHistory& history = buckets_[bucket];
  const auto generation = history.generations.find(history.record.generation);
  const std::size_t committed =
      generation == history.generations.end() ? 0 : generation->second.origins.size();
  const ps::Bucket* const at = view_.bucket(bucket, holder);
  const ps::Lsn prepared = at == nullptr ? 0 : at->replica().prepared();
  if (prepared < committed || at == nullptr || at->content().shards.empty()) {
    Report("I9: a server joins that has entries up to " + std::to_string(prepared) + " of " +
               std::to_string(committed),
           bucket,
           holder);
  }
}

bool Checker::MayBeLost(BucketId bucket) const {
  const BucketHistory& history = buckets_[bucket];
  const auto lied = [&](const auto& member) { return view_.disk(member.slot).has_lied(); };
  if (!history.served) {  // it was to come back, or has never been there
    return std::ranges::all_of(history.last_members, lied);
  }
  return IsLost(bucket) && std::ranges::all_of(history.record.members, lied);
}

bool Checker::LastMembersLied(BucketId bucket) const {
  return std::ranges::any_of(buckets_[bucket].last_members, [&](const ps::Holder& member) {
    return view_.disk(member.slot).has_lied();
  });
}

// --- Replicas

void Checker::Watch(BucketId bucket, const ps::Holder& holder, const ps::Replica& replica) {
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

void Checker::Promised(BucketId bucket, const ps::Holder& holder, ps::Epoch epoch) {
  if (epoch < buckets_[bucket].epochs[holder]) {
    Report("I3: a server accepts what belongs to an earlier epoch", bucket, holder);
  }
}

void Checker::Committed(BucketId bucket,
                        const ps::Holder& holder,
                        const ps::Replica& replica,
                        const ps::Entry& entry) {
  Generation& generation = buckets_[bucket].generations[replica.configuration().generation];
  std::vector<ps::Epoch>& origins = generation.origins;
  if (entry.lsn > origins.size() + 1) {
    Report("I7: an entry is committed before the one before it", bucket, holder);
  } else if (entry.lsn <= origins.size() && origins[entry.lsn - 1] != entry.origin) {
    Report(
        "I7: servers commit different entries at lsn " + std::to_string(entry.lsn), bucket, holder);
  }
  if (entry.lsn == origins.size() + 1) {
    origins.push_back(entry.origin);
    for (const ps::LoggedUpdate& update : entry.updates) {
      generation.touching[update.shard].push_back(entry.lsn);
    }
  }
  if (IsCurrent(bucket, replica.configuration().generation)) {
    std::ranges::for_each(entry.puts, [&](const auto& put) { records_.Committed(put); });
  }
  if (replica.IsPrimary()) {
    CheckMembers(bucket, replica, entry);
  }
}

void Checker::CheckMembers(BucketId bucket, const ps::Replica& replica, const ps::Entry& entry) {
  const ps::Configuration& configuration = replica.configuration();
  if (configuration.members.size() < setup_.min_in_sync) {
    Report(
        "I4: an entry is committed by fewer than minInSync members", bucket, configuration.primary);
  }
  for (const ps::Holder& member : configuration.members) {
    const ps::Bucket* const at = view_.bucket(bucket, member);
    if (at == nullptr || at->replica().configuration().epoch != configuration.epoch) {
      continue;
    }
    if (!Has(at->replica(), entry)) {
      Report("I4: an entry is committed that a member lacks", bucket, member);
    } else if (!IsLogged(bucket, member, entry)) {
      Report("I4: an entry is committed that a member has not stored", bucket, member);
    }
  }
}

}  // namespace adamant::replication_simulation
