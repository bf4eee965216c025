#include "tests/simulation/replication/checks/checker.h"

#include <algorithm>
#include <utility>

namespace adamant::replication_simulation {
namespace {

using Role = ps::Replica::Role;

ps::ServerId ToServerId(const controller::ServerId& server) {
  return {server.slot, server.incarnation};
}

bool Has(const ps::Replica& replica, const ps::Entry& entry) {
  if (entry.lsn <= replica.log().committed()) {
    return true;
  }
  return entry.lsn <= replica.log().prepared() &&
         replica.log().entries()[entry.lsn - replica.log().committed() - 1]->origin == entry.origin;
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

void Checker::Report(const std::string& what, BucketId bucket, const ps::ServerId& server) {
  violations_.Report(what + " (bucket " + std::to_string(bucket) + ", server-" +
                     std::to_string(server.slot) + "#" + std::to_string(server.incarnation) +
                     "; row \"" + setup_.Row() + "\")");
}

// --- Records

void Checker::Stored(std::uint64_t term, const std::vector<controller::Configuration>& records) {
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

void Checker::Tell(BucketId bucket, const controller::Configuration& record) {
  const auto name = [](const controller::ServerId& server) {
    return std::to_string(server.slot) + "#" + std::to_string(server.incarnation);
  };
  std::string text = "primary " + name(record.primary) + ", members";
  for (const controller::ServerId& replica : record.replicas) {
    text += " " + name(replica);
  }
  text += record.learner ? ", learner " + name(*record.learner) : "";
  text += record.departing ? ", leaver " + name(*record.departing) : "";
  text += record.successor ? ", heir " + name(*record.successor) : "";
  scheduler_.Record("bucket " + std::to_string(bucket), text, record.generation, record.version);
}

void Checker::CheckChange(BucketId bucket, const controller::Configuration& record) {
  BucketHistory& history = buckets_[bucket];
  const controller::Configuration& before = history.record;
  const ps::ServerId primary = ToServerId(record.primary);
  if (record.version < before.version) {
    return Report("I2: a configuration version falls", bucket, primary);
  }
  const auto [known, added] = history.primaries.emplace(record.version, primary);
  if (known->second != primary) {
    Report("I2: a configuration version has two primaries", bucket, primary);
  }
  if (record.version == before.version || before.version == 0) {
    return;
  }
  const auto lives = [&](const controller::ServerId& each) {
    return view_.lives(ToServerId(each));
  };
  if (record.generation != before.generation) {
    CheckRestore(bucket, record);
  }
  for (const controller::ServerId& replica : before.replicas) {
    if (record.generation == before.generation && before.created && lives(replica) &&
        !record.Has(replica) && record.replicas.size() < setup_.min_in_sync) {
      Report("I14: one that lives leaves fewer than minInSync", bucket, ToServerId(replica));
    }
  }
  CheckDurable(bucket, record);
  for (const controller::ServerId& replica : record.replicas) {
    if (record.generation == before.generation && before.created && !before.Has(replica)) {
      CheckJoined(bucket, ToServerId(replica));
    }
  }
}

void Checker::CheckRestore(BucketId bucket, const controller::Configuration& record) {
  BucketHistory& history = buckets_[bucket];
  if (!IsLost(bucket)) {
    Report(
        "I12: a bucket is restored although a replica lives", bucket, ToServerId(record.primary));
  }
  history.durable = 0;
  if (std::exchange(history.served, false)) {
    history.last_members.clear();
    for (const controller::ServerId& replica : history.record.replicas) {
      history.last_members.push_back(ToServerId(replica));
    }
  }
}

bool Checker::IsLost(BucketId bucket) const {
  const auto holds = [&](const controller::ServerId& each) {
    const ps::ServerId server = ToServerId(each);
    if (!view_.lives(server)) {
      return false;
    }
    const ps::Bucket* const at = view_.bucket(bucket, server);
    const bool is_damaged = at != nullptr && at->lost.has_value();  // found as it was read
    return !is_damaged || !view_.disk(server.slot).has_lied();
  };
  return std::ranges::none_of(buckets_[bucket].record.replicas, holds);
}

void Checker::CheckJoined(BucketId bucket, const ps::ServerId& server) {
  if (!view_.lives(server)) {
    return;
  }
  const BucketHistory& history = buckets_[bucket];
  const auto generation = history.generations.find(history.record.generation);
  const std::size_t committed =
      generation == history.generations.end() ? 0 : generation->second.origins.size();
  const ps::Bucket* const at = view_.bucket(bucket, server);
  const ps::Lsn prepared = at == nullptr ? 0 : at->replica().log().prepared();
  if (prepared < committed || at == nullptr || at->content().shards.empty()) {
    Report("I9: a server joins that has entries up to " + std::to_string(prepared) + " of " +
               std::to_string(committed),
           bucket,
           server);
  }
}

bool Checker::MayBeLost(BucketId bucket) const {
  const BucketHistory& history = buckets_[bucket];
  const auto lied = [&](const auto& replica) { return view_.disk(replica.slot).has_lied(); };
  if (!history.served) {  // it was to come back, or has never been there
    return std::ranges::all_of(history.last_members, lied);
  }
  return IsLost(bucket) && std::ranges::all_of(history.record.replicas, lied);
}

bool Checker::LastReplicasLied(BucketId bucket) const {
  return std::ranges::any_of(buckets_[bucket].last_members, [&](const ps::ServerId& replica) {
    return view_.disk(replica.slot).has_lied();
  });
}

// --- Replicas

void Checker::Watch(BucketId bucket, const ps::ServerId& server, const ps::Replica& replica) {
  BucketHistory& history = buckets_[bucket];
  const ps::Configuration& configuration = replica.configuration();
  if (configuration.version == 0) {
    return;
  }
  ConfigurationVersion& configuration_version = history.epochs[server];
  if (configuration.version < configuration_version) {
    Report("I3: a configuration version falls", bucket, server);
  }
  configuration_version = configuration.version;
  const auto primary = history.primaries.find(configuration.version);
  if (primary == history.primaries.end() || primary->second != configuration.primary) {
    Report("I2: a server takes another for the primary than the record says", bucket, server);
  }
  if (replica.IsPrimary() && replica.durable() > history.durable &&
      IsCurrent(bucket, configuration.generation)) {
    history.durable = replica.durable();
    CheckDurable(bucket, history.record);
  }
}

void Checker::Promised(BucketId bucket,
                       const ps::ServerId& server,
                       ConfigurationVersion configuration_version) {
  if (configuration_version < buckets_[bucket].epochs[server]) {
    Report("I3: a server accepts what belongs to an earlier configuration", bucket, server);
  }
}

void Checker::Committed(BucketId bucket,
                        const ps::ServerId& server,
                        const ps::Replica& replica,
                        const ps::Entry& entry) {
  Generation& generation = buckets_[bucket].generations[replica.configuration().generation];
  std::vector<ConfigurationVersion>& origins = generation.origins;
  if (entry.lsn > origins.size() + 1) {
    Report("I7: an entry is committed before the one before it", bucket, server);
  } else if (entry.lsn <= origins.size() && origins[entry.lsn - 1] != entry.origin) {
    Report(
        "I7: servers commit different entries at lsn " + std::to_string(entry.lsn), bucket, server);
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
    CheckReplicas(bucket, replica, entry);
  }
}

void Checker::CheckReplicas(BucketId bucket, const ps::Replica& replica, const ps::Entry& entry) {
  const ps::Configuration& configuration = replica.configuration();
  if (configuration.replicas.size() < setup_.min_in_sync) {
    Report("I4: an entry is committed by fewer than minInSync replicas",
           bucket,
           configuration.primary);
  }
  for (const ps::ServerId& server : configuration.replicas) {
    const ps::Bucket* const at = view_.bucket(bucket, server);
    if (at == nullptr || at->replica().configuration().version != configuration.version) {
      continue;
    }
    if (!Has(at->replica(), entry)) {
      Report("I4: an entry is committed that a replica lacks", bucket, server);
    } else if (!IsLogged(bucket, server, entry)) {
      Report("I4: an entry is committed that a replica has not stored", bucket, server);
    }
  }
}

}  // namespace adamant::replication_simulation
