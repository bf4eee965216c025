// What must hold of the whole cluster.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "tests/simulation/replication/cluster.h"
#include "tests/simulation/replication/convert.h"

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
  if (std::ranges::any_of(disks_, [](const auto& disk) { return disk->has_lied(); })) {
    return Clock::TimePoint::min();
  }
  const bool power_was_lost = power_lost_at_ + std::chrono::minutes(2) > now;
  if (world_.setup.persistence == Persistence::kWalSync ||
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
      HostedBucket* const hosted = slot.process == nullptr ? nullptr : slot.process->bucket(bucket);
      const Content* const content = hosted == nullptr ? nullptr : hosted->Readable();
      if (content != nullptr) {
        world_.checker.Read(bucket, slot.process->holder(), *content);
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
    HostedBucket* const hosted = server == nullptr ? nullptr : server->bucket(0);
    if (hosted != nullptr && hosted->Readable() != nullptr) {
      world_.tracer->Reads(slot, hosted->replica().configuration().epoch);
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
  const Content* truth = nullptr;
  for (const controller::Holder& member : record.members) {
    ServerProcess* const server = Find(FromController(member));
    HostedBucket* const hosted = server == nullptr ? nullptr : server->bucket(bucket);
    if (hosted == nullptr || hosted->content() == nullptr) {
      return fail("has a member that does not hold it");
    }
    if (member == record.primary && (hosted->Readable() == nullptr || hosted->waits())) {
      return fail("is not served");
    }
    if (!hosted->replica().log().empty()) {
      return fail("has entries that are not committed");
    }
    if (truth != nullptr && truth->shards != hosted->content()->shards) {
      return fail("has members that differ");
    }
    truth = hosted->content();
  }
}

}  // namespace adamant::replication_simulation
