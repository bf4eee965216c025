#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "services/common/base/failpoint.h"
#include "tests/simulation/engine/scheduler.h"

namespace adamant::simulation {

/// A step of the cores, named as its failpoint (docs/failpoints.md), and how it comes about.
struct Step {
  const char* name;
  double share;   ///< of the seeds that pass it
  double passes;  ///< mean over those
};

/// What can happen to a process in the middle of a step.
enum class StepFault : std::uint8_t { kPause, kCrash, kCutOff };

inline constexpr int kStepFaults = 3;

std::string_view NameOf(StepFault fault);

/// While one lives, this thread runs code of the cores for a checker: no step is passed.
class StepsIgnored {
 public:
  StepsIgnored();
  ~StepsIgnored();
  StepsIgnored(const StepsIgnored&) = delete;
  StepsIgnored& operator=(const StepsIgnored&) = delete;

  [[nodiscard]] static bool any();
};

/// Faults aimed at steps of the cores, in any simulation: drawn from the seed, and from how often
/// each step comes about, such that each step meets about as many faults over all seeds, the rare
/// ones too. Only in builds with failpoints; elsewhere nothing happens, and RunNext is the
/// scheduler's.
/// Threads: one.
class AimedFaults {
 public:
  /// By step: how often it was passed, by any process.
  using Passes = std::map<std::string, std::uint64_t, std::less<>>;
  using Hits = std::map<std::pair<std::string, StepFault>, std::uint64_t>;

  /// What is done to the process of this life.
  struct Body {
    std::function<Clock::Duration(const LifePtr&)> pause_time;
    std::function<void(const LifePtr&, Clock::Duration)> pause;
    std::function<void(const LifePtr&)> crash;
    std::function<void(const LifePtr&)> cut_off;

    /// Is told of every step that it is in the midst of. Null: nothing listens.
    std::function<void(std::string_view step, const LifePtr&)> passed = nullptr;
  };

  /// `scheduler` must outlive this.
  AimedFaults(Scheduler& scheduler, Body body);

  /// `share`: of the seeds that are to put a fault at any one step.
  void Aim(std::span<const Step> steps, double share, std::uint64_t seed);

  /// From now on nothing happens at steps.
  void Stop() { plans_.clear(); }

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
  void Pass(std::string_view step);
  void Inject(std::string_view step, StepFault fault);

  Scheduler& scheduler_;
  const Body body_;
  std::map<std::string, Plan, std::less<>> plans_;
  std::optional<Paused> paused_;  // in the step that runs
  Passes passes_;
  Hits hits_;
#ifdef ADAMANT_FAILPOINTS
  const failpoint::ScopedHandler handler_;
#endif
};

}  // namespace adamant::simulation
