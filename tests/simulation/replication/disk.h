#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tests/simulation/replication/content.h"
#include "tests/simulation/replication/setup.h"

namespace adamant::replication_simulation {

/// What a server's disk holds of one bucket.
struct StoredBucket {
  bool complete = false;
  std::uint64_t generation = 0;
  std::vector<ShardState> shards;
  std::map<parameter_server::Lsn, parameter_server::EntryPtr> log;
};

/// The disk of one slot: takes changes one after the other, keeps what processes leave behind.
/// Threads: one.
class Disk {
 public:
  using Change = std::function<void(StoredBucket&)>;

  Disk(Scheduler& scheduler, std::uint32_t buckets)
      : scheduler_(scheduler), written_(buckets), synced_(buckets) {}

  /// Changes a bucket some time later, if the process is still there, and tells it then; with
  /// `sync` the change, and those before it, are there after a loss of power.
  void Do(const LifePtr& life,
          std::uint32_t bucket,
          bool sync,
          Change change,
          std::function<void()> done);

  [[nodiscard]] const StoredBucket& Read(std::uint32_t bucket) const { return written_[bucket]; }
  [[nodiscard]] const StoredBucket& ReadSynced(std::uint32_t bucket) const {
    return synced_[bucket];
  }

  /// The incarnation that opened the disk last; 0: none.
  std::uint64_t opened_by = 0;

  /// A process ends: what it had not handed over is not done.
  void Drop() { queue_.clear(); }

  /// What is not synced is gone.
  void LosePower();

  // --- Faults

  void SetFull(bool full) { full_ = full; }
  void SetLatency(Clock::Duration latency) { latency_ = latency; }
  /// Nothing is synced any more; not to be known by who asks has_lied() if it is a `secret`.
  void SetLying(bool lying, bool secret = false) {
    lying_ = lying;
    has_lied_ = has_lied_ || (lying && !secret);
  }

  /// Something keeps it, or the process that uses it, from storing at the usual pace.
  void Hindered(Clock::TimePoint from, Clock::TimePoint until) {
    hindrances_.push_back({from, until});
  }

  [[nodiscard]] const std::vector<Interval>& hindrances() const { return hindrances_; }

  /// It may have lost what it said was stored.
  [[nodiscard]] bool has_lied() const { return has_lied_; }

 private:
  struct Operation {
    LifePtr life;
    std::uint32_t bucket = 0;
    bool sync = false;
    Change change;
    std::function<void()> done;
  };
  struct Unsynced {
    std::uint32_t bucket = 0;
    Change change;
  };

  void PlanNext();
  void DoNext();

  Scheduler& scheduler_;
  std::vector<StoredBucket> written_;
  std::vector<StoredBucket> synced_;
  std::vector<Unsynced> unsynced_;
  std::deque<Operation> queue_;
  bool planned_ = false;
  bool full_ = false;
  bool lying_ = false;
  bool has_lied_ = false;
  Clock::Duration latency_{0};
  std::vector<Interval> hindrances_;
};

}  // namespace adamant::replication_simulation
