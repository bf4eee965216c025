// What must hold of the whole cluster.

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/replication/processes/cluster.h"
#include "tests/simulation/replication/world/inside.h"

namespace adamant::replication_simulation {
// Of the disk of this slot, from which the bucket comes back.
Clock::TimePoint Cluster::SafeBefore(BucketId bucket, std::uint32_t slot) const {
  if (world_.checker.LastReplicasLied(bucket)) {
    return Clock::TimePoint::min();
  }
  const std::vector<ps::ServerId>& replicas = world_.checker.LastMembers(bucket);
  const auto lost_power = [&](const ps::ServerId& replica) {
    const auto death = deaths_.find(replica);
    return death != deaths_.end() && power_lost_at_[replica.slot] >= death->second;
  };
  if (world_.setup.mode == ps::PersistenceMode::kWalSync ||
      (world_.setup.logged() && !std::ranges::all_of(replicas, lost_power))) {
    return world_.scheduler.Now();
  }
  const auto replica = std::ranges::find(replicas, slot, &ps::ServerId::slot);
  const auto death = replica == replicas.end() ? deaths_.end() : deaths_.find(*replica);
  return death == deaths_.end()
             ? Clock::TimePoint::min()
             : world_.loss_window.SafeBefore(*replica, bucket, death->second, *disks_[slot]);
}

void Cluster::CheckStep() {
  if (!world_.setup.good_clocks) {
    return;
  }
  for (BucketId bucket = 0; bucket < world_.setup.buckets; ++bucket) {
    std::uint32_t readers = 0;
    for (const Slot& slot : slots_) {
      const ServerProcess* const server = slot.process.get();
      if (server != nullptr && server->CanRead(bucket)) {
        world_.checker.Read(bucket, server->server(), *server->bucket(bucket));
        ++readers;
      }
    }
    if (readers > 1) {
      world_.violations.Report("I1: bucket " + std::to_string(bucket) + " has " +
                               std::to_string(readers) + " primaries with a lease");
    }
    CheckLeft(bucket, readers > 0);
  }
  TraceReads();
}

// A process whose volume is attached elsewhere counts as dead: what it holds may be read for a
// lease, where others answered for it.
void Cluster::CheckLeft(BucketId bucket, bool read) {
  for (Left& left : left_) {
    const ServerProcess& server = *left.process;
    if (!read || !server.CanRead(bucket) || server.IsAloneWith(bucket) ||
        server.bucket(bucket)->replica().configuration().replicas.size() == 1) {
      left.read_since.erase(bucket);
      continue;
    }
    const auto [since, first] = left.read_since.emplace(bucket, world_.scheduler.Now());
    if (world_.scheduler.Now() - since->second > ps::ReplicationTimes{}.lease * 5 / 4) {
      world_.violations.Report("I1: bucket " + std::to_string(bucket) +
                               " is read for more than a lease where it was given up");
    }
  }
}

// Now and then, and when a read should not have been possible.
void Cluster::TraceReads() {
  if (world_.tracer == nullptr ||
      (world_.scheduler.Now() < next_traced_read_ && world_.violations.first().empty())) {
    return;
  }
  next_traced_read_ = world_.scheduler.Now() + milliseconds(300);
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    ServerProcess* const server = slots_[slot].process.get();
    if (server != nullptr && server->CanRead(0)) {
      world_.tracer->Reads(slot, server->bucket(0)->replica().configuration().version);
    }
  }
}

// Leases that cannot be relied on may lead to changes at any time.
void Cluster::CheckRecovered() {
  if (!world_.setup.good_clocks) {
    return;
  }
  for (BucketId bucket = 0; bucket < world_.setup.buckets; ++bucket) {
    CheckRecovered(bucket);
  }
}

void Cluster::CheckRecovered(BucketId bucket) {
  const auto fail = [&](const std::string& what) {
    world_.violations.Report("I13: after a minute without faults bucket " + std::to_string(bucket) +
                             " " + what);
  };
  const controller::Configuration& record = controller_->records().at(bucket);
  if (record.replicas.size() != world_.setup.copies) {
    return fail("has " + std::to_string(record.replicas.size()) + " copies");
  }
  std::vector<std::uint64_t> truth;
  std::optional<std::string> record_there;
  for (const controller::ServerId& replica : record.replicas) {
    const ServerProcess* const server = Find({replica.slot, replica.incarnation});
    const ps::Bucket* const at = server == nullptr ? nullptr : server->bucket(bucket);
    if (at == nullptr || at->content().shards.empty()) {
      return fail("has a replica that does not hold it");
    }
    if (replica == record.primary && (!server->CanRead(bucket) || !at->waiting.empty())) {
      return fail("is not served");
    }
    if (!at->replica().log().entries().empty()) {
      return fail("has entries that are not committed");
    }
    std::vector<std::uint64_t> hashes;
    for (const ps::LiveShardPtr& shard : at->content().shards) {
      hashes.push_back(HashOf(ContentOf(*shard)));
    }
    if (!truth.empty() && truth != hashes) {
      return fail("has replicas that differ");
    }
    truth = std::move(hashes);
    const auto& records = at->content().records;
    const auto kept = records.find(world_.setup.record_of[bucket]);
    const std::string value = kept == records.end() ? "" : kept->second.value;
    if (record_there.has_value() && *record_there != value) {
      return fail("has replicas with different records");
    }
    record_there = value;
  }
}

}  // namespace adamant::replication_simulation
