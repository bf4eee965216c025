#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/clock.h"
#include "tests/simulation/scheduler.h"

namespace adamant::replication_simulation {

using simulation::Life;
using simulation::LifePtr;
using simulation::microseconds;
using simulation::milliseconds;
using simulation::Scheduler;
using simulation::seconds;

/// Begin and end.
using Interval = std::pair<Clock::TimePoint, Clock::TimePoint>;

/// What a member has when it acknowledges an entry.
enum class Persistence : std::uint8_t { kDelayed, kWal, kWalSync };

/// The cluster of one seed.
struct Setup {
  std::uint32_t servers = 3;
  std::uint32_t buckets = 1;
  std::uint32_t shards = 2;  ///< of each bucket
  std::uint32_t writers = 2;
  std::uint32_t copies = 3;
  std::uint32_t min_in_sync = 1;
  Persistence persistence = Persistence::kDelayed;
  Clock::Duration flush_interval{};
  Clock::Duration think_time{};     ///< of a writer between pushes, on average
  bool streams = true;              ///< else servers talk in datagrams: lost, late, twice
  std::vector<std::int64_t> drift;  ///< by server: nanoseconds a second that its clock is fast
  bool good_clocks = true;          ///< within the 10 % that leases allow for
  std::uint64_t faults = 20;

  [[nodiscard]] bool logged() const { return persistence != Persistence::kDelayed; }
  [[nodiscard]] std::string Describe() const;
};

Setup DrawSetup(Scheduler& scheduler);

/// One bucket of three servers and few faults.
Setup DrawSmallSetup(Scheduler& scheduler);

}  // namespace adamant::replication_simulation
