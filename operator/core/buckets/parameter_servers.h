#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/core/buckets/balancer.h"
#include "operator/core/processes/process_table.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// The processes of parameter servers as servers that hold buckets: who runs, since when who is
/// away, where they are.
/// Threads: one thread at a time.
class ParameterServers {
 public:
  using TimePoint = Clock::TimePoint;

  /// The arguments must outlive this.
  ParameterServers(const JobSettings& settings, const ProcessTable& processes);

  /// Takes every server for away since now.
  void Begin(TimePoint now);

  /// The slot has lost its process.
  void OnLost(std::uint32_t slot, TimePoint now);

  /// The slot's process has marked its disk: nobody is named in a configuration before, so that
  /// whoever opens the disk later proves that those who are named have ended.
  void OnOpened(std::uint32_t slot);

  /// The slot's process is about to stop.
  void OnDraining(std::uint32_t slot) { draining_.insert(slot); }

  /// Of what the slot's process has not flushed yet, the age of the oldest.
  void SetOldestUnflushed(std::uint32_t slot, double seconds) { unflushed_[slot] = seconds; }
  [[nodiscard]] double OldestUnflushed(std::uint32_t slot) const;

  /// By node: for replicas that name no zone themselves.
  void SetZones(std::map<std::string, std::string> zones);

  /// The last process of the slot.
  [[nodiscard]] ServerId ServerIdOf(std::uint32_t slot) const;

  /// The process has joined, and is not lost.
  [[nodiscard]] bool Runs(ServerId server) const;

  /// All servers, by slot; one runs when it has opened its disk too.
  [[nodiscard]] std::vector<Balancer::Server> All() const;

  /// Of each server of an earlier controller it is known whether it runs.
  [[nodiscard]] bool KnowsWhoRuns() const;

 private:
  const JobSettings& settings_;
  const ProcessTable& processes_;
  std::vector<TimePoint> away_since_;          // by slot, of those that do not run
  std::vector<Incarnation> opened_;            // by slot: the incarnation that has marked its disk
  std::set<std::uint32_t> draining_;           // slots
  std::map<std::string, std::string> zones_;   // by node
  std::map<std::uint32_t, double> unflushed_;  // seconds by slot
};

}  // namespace adamant::controller
