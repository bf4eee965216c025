// What must hold of the whole cluster.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "tests/simulation/replication/cluster.h"
#include "tests/simulation/replication/inside.h"

namespace adamant::replication_simulation {
namespace {

/// `pace` before `end`, not counting what is in the intervals or within `pace` behind them.
Clock::TimePoint Before(Clock::TimePoint end,
                        Clock::Duration pace,
                        std::vector<Interval> intervals,
                        const std::vector<Interval>& more) {
  intervals.insert(intervals.end(), more.begin(), more.end());
  std::ranges::sort(intervals, std::greater());
  for (const auto& [from, until] : intervals) {
    if (from <= end && until + pace >= end) {
      end = from;
    }
  }
  return end - pace;
}

}  // namespace

// What is lost is at most what was acknowledged in the last interval of flushing of the member that
// died last, not counting time in which nothing was acknowledged; and what it did not know to be
// committed, which it would have learnt within a lease.
Clock::TimePoint Cluster::SafeBefore(std::uint32_t bucket) const {
  const Clock::TimePoint now = world_.scheduler.Now();
  if (world_.checker.LastMembersLied(bucket)) {
    return Clock::TimePoint::min();
  }
  const bool power_was_lost = power_lost_at_ + std::chrono::minutes(2) > now;
  if (world_.setup.mode == ps::PersistenceMode::kWalSync ||
      (world_.setup.logged() && !power_was_lost)) {
    return now;
  }
  const auto last = world_.checker.LastDeath(bucket, deaths_);
  if (!last.has_value()) {
    return Clock::TimePoint::min();
  }
  const Clock::TimePoint end = std::min(last->second, world_.checker.LastAcknowledgement(bucket));
  const Clock::Duration pace = world_.setup.flush_interval * 3 + seconds(4);
  return Before(end, pace, disks_[last->first.slot]->hindrances(), world_.checker.Silences(bucket));
}

void Cluster::CheckStep() {
  if (!world_.setup.good_clocks) {
    return;
  }
  for (std::uint32_t bucket = 0; bucket < world_.setup.buckets; ++bucket) {
    std::uint32_t readers = 0;
    for (const Slot& slot : slots_) {
      const ServerProcess* const server = slot.process.get();
      if (server != nullptr && server->CanRead(bucket)) {
        world_.checker.Read(bucket, server->holder(), *server->bucket(bucket));
        ++readers;
      }
    }
    if (readers > 1) {
      world_.violations.Report("I1: bucket " + std::to_string(bucket) + " has " +
                               std::to_string(readers) + " primaries with a lease");
    }
  }
  TraceReads();
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
      world_.tracer->Reads(slot, server->bucket(0)->replica().configuration().epoch);
    }
  }
}

// Leases that cannot be relied on may lead to changes at any time.
void Cluster::CheckRecovered() {
  if (!world_.setup.good_clocks) {
    return;
  }
  for (std::uint32_t bucket = 0; bucket < world_.setup.buckets; ++bucket) {
    CheckRecovered(bucket);
  }
}

void Cluster::CheckRecovered(std::uint32_t bucket) {
  const auto fail = [&](const std::string& what) {
    world_.violations.Report("I13: after a minute without faults bucket " + std::to_string(bucket) +
                             " " + what);
  };
  const controller::Bucket& record = controller_->records().at(bucket);
  if (record.members.size() != world_.setup.copies) {
    return fail("has " + std::to_string(record.members.size()) + " copies");
  }
  std::vector<std::uint64_t> truth;
  for (const controller::Holder& member : record.members) {
    const ServerProcess* const server = Find({member.slot, member.incarnation});
    const ps::Bucket* const at = server == nullptr ? nullptr : server->bucket(bucket);
    if (at == nullptr || at->content().shards.empty()) {
      return fail("has a member that does not hold it");
    }
    if (member == record.primary && (!server->CanRead(bucket) || !at->waiting.empty())) {
      return fail("is not served");
    }
    if (!at->replica().log().empty()) {
      return fail("has entries that are not committed");
    }
    std::vector<std::uint64_t> hashes;
    for (const ps::LiveShardPtr& shard : at->content().shards) {
      hashes.push_back(HashOf(ContentOf(*shard)));
    }
    if (!truth.empty() && truth != hashes) {
      return fail("has members that differ");
    }
    truth = std::move(hashes);
  }
}

}  // namespace adamant::replication_simulation
