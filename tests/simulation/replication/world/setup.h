#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/optimiser/optimiser.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "tests/simulation/engine/scheduler.h"

namespace adamant::replication_simulation {

using simulation::Life;
using simulation::LifePtr;
using simulation::microseconds;
using simulation::milliseconds;
using simulation::Scheduler;
using simulation::seconds;

namespace ps = parameter_server;

/// Of every simulated job.
inline constexpr std::uint64_t kJobUid = 7;

/// Begin and end.
using Interval = std::pair<Clock::TimePoint, Clock::TimePoint>;

/// The cluster of one seed.
struct Setup {
  std::uint32_t servers = 3;
  std::uint32_t buckets = 1;
  std::uint32_t writers = 2;
  std::uint32_t clerks = 0;  ///< who write records
  std::uint32_t copies = 3;
  std::uint32_t min_in_sync = 1;
  ps::PersistenceMode mode = ps::PersistenceMode::kDelayed;
  std::uint32_t in_flight = 1;  ///< pushes of a writer to a bucket, at most
  Clock::Duration flush_interval{};
  std::chrono::milliseconds checkpoint_interval{};
  Clock::Duration think_time{};     ///< of a writer between pushes, on average
  bool streams = true;              ///< else servers talk in datagrams: lost, late, twice
  std::vector<std::int64_t> drift;  ///< by server: nanoseconds a second that its clock is fast
  bool good_clocks = true;          ///< within the 10 % that leases allow for
  bool honest_disks = true;         ///< else some lie about syncs, and bits flip
  std::uint64_t faults = 20;

  /// The model: a shard a tensor, at least one in each bucket.
  std::vector<Parameter> parameters;
  std::vector<std::vector<ShardId>> shards_of;  ///< by bucket
  ParameterOptimiser optimiser;                 ///< of every tensor
  std::vector<std::string> record_of;           ///< by bucket: the key of its only record

  /// Only checkpoints are stored.
  [[nodiscard]] bool only_checkpoints() const { return mode == ps::PersistenceMode::kNone; }
  [[nodiscard]] bool logged() const {
    return mode == ps::PersistenceMode::kWal || mode == ps::PersistenceMode::kWalSync;
  }
  [[nodiscard]] std::uint32_t shards() const {
    return static_cast<std::uint32_t>(parameters.size());
  }
  [[nodiscard]] ps::ShardIdentity IdentityOf(ShardId shard) const;
  [[nodiscard]] ps::ParameterServerOptions ParameterServerOptions(const ps::ServerId& self,
                                                                  std::uint64_t attempt) const;
  [[nodiscard]] std::string Describe() const;

  /// The row of the table of promises in docs/replication.md: "3, WalSync".
  [[nodiscard]] std::string Row() const;
};

Setup DrawSetup(Scheduler& scheduler);

/// One bucket of three servers and few faults.
Setup DrawSmallSetup(Scheduler& scheduler);

}  // namespace adamant::replication_simulation
