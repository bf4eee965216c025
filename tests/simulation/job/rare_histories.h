#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tests/simulation/job/cluster.h"
#include "tests/simulation/job/faults.h"
#include "tests/simulation/job/processes/world.h"

namespace adamant::simulation {

/// Histories of several faults that chance would put together once in tens of thousands of seeds:
/// each is what shows one fault of the protocol. Drawn from the seed and from what its job has;
/// they begin at steps (StepFaults), so only in builds with failpoints.
/// Threads: one.
class RareHistories {
 public:
  /// All must outlive this.
  RareHistories(World& world, Cluster& cluster, Faults& faults, std::uint64_t seed);

  /// This process is in the midst of a step.
  void Passed(std::string_view step, const LifePtr& life);

 private:
  void RollBack(const LifePtr& flushed);
  void StretchPause();
  void StretchStore();
  void Delay(controller::Role role, Clock::Duration by, Clock::Duration during);

  World& world_;
  Cluster& cluster_;
  Faults& faults_;

  // How often the step is passed before the history begins; nullopt: it does not.
  std::optional<std::uint64_t> roll_back_after_;
  std::optional<std::uint64_t> stretch_after_;
  bool flushing_ = false;    // the next worker that has flushed is waited for
  bool stretching_ = false;  // the attempt whose store is to take long
};

}  // namespace adamant::simulation
