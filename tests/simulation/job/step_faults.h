#pragma once

#include <cstdint>

#include "tests/simulation/engine/aimed_faults.h"
#include "tests/simulation/job/cluster.h"
#include "tests/simulation/job/faults.h"
#include "tests/simulation/job/processes/world.h"
#include "tests/simulation/job/rare_histories.h"

namespace adamant::simulation {

/// Faults aimed at steps in this simulation: see AimedFaults.
/// Threads: one.
class StepFaults {
 public:
  using Passes = AimedFaults::Passes;
  using Hits = AimedFaults::Hits;

  /// All must outlive this. `aims` false: it counts passes alone.
  StepFaults(World& world, Cluster& cluster, Faults& faults, std::uint64_t seed, bool aims);

  /// As AimedFaults.
  bool RunNext() { return aimed_.RunNext(); }
  [[nodiscard]] const Passes& passes() const { return aimed_.passes(); }
  [[nodiscard]] const Hits& hits() const { return aimed_.hits(); }

 private:
  void Crash(const LifePtr& life);

  Cluster& cluster_;
  Faults& faults_;
  RareHistories histories_;
  AimedFaults aimed_;
};

}  // namespace adamant::simulation
