#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "services/common/base/failpoint.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/world.h"

namespace adamant::simulation {

/// What can happen to a process in the middle of a step.
enum class StepFault : std::uint8_t { kPause, kCrash, kCutOff };

inline constexpr int kStepFaults = 3;

std::string_view NameOf(StepFault fault);

/// Faults aimed at steps of the cores: drawn from the seed, and from how often each step comes
/// about, such that each step meets about as many faults over all seeds, the rare ones too. Only in
/// builds with failpoints; elsewhere nothing happens, and Run is RunNext.
/// Threads: one.
class StepFaults {
 public:
  /// By step: how often it was passed, by any process.
  using Passes = std::map<std::string, std::uint64_t, std::less<>>;
  using Hits = std::map<std::pair<std::string, StepFault>, std::uint64_t>;

  /// All must outlive this. `aims` false: it counts passes alone.
  StepFaults(World& world, Cluster& cluster, Faults& faults, std::uint64_t seed, bool aims);

  /// Runs the next event, as Scheduler::RunNext. A process that crashes in it does nothing more.
  bool RunNext();

  [[nodiscard]] const Passes& passes() const { return passes_; }
  [[nodiscard]] const Hits& hits() const { return hits_; }

 private:
  struct Plan {
    StepFault fault = StepFault::kPause;
    std::uint64_t after = 0;  // so many passes
  };

  struct Paused {
    LifePtr life;
    Clock::Duration time{};
  };

  bool RunStep();
  void Aim(std::uint64_t seed);
  void Pass(std::string_view step);
  void Inject(std::string_view step, StepFault fault);
  void Crash(const LifePtr& life);

  World& world_;
  Cluster& cluster_;
  Faults& faults_;
  std::map<std::string, Plan, std::less<>> plans_;
  std::optional<Paused> paused_;  // in the step that runs
  Passes passes_;
  Hits hits_;
#ifdef ADAMANT_FAILPOINTS
  const failpoint::ScopedHandler handler_;
#endif
};

}  // namespace adamant::simulation
