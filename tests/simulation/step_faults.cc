#include "tests/simulation/step_faults.h"

#include <algorithm>
#include <utility>

#include "services/common/base/rng.h"
#include "tests/simulation/steps.h"

namespace adamant::simulation {
namespace {

constexpr std::uint64_t kAim = 2;  // of the random numbers of a seed

// How many seeds of a thousand are to put a fault at a step.
constexpr double kWanted = 0.04;
constexpr double kOftenest = 0.9;

// Leaves the step in which its process dies.
struct Died {
  LifePtr life;
};

}  // namespace

std::string_view NameOf(StepFault fault) {
  switch (fault) {
    case StepFault::kPause:
      return "pause";
    case StepFault::kCrash:
      return "crash";
    case StepFault::kCutOff:
      break;
  }
  return "cut";
}

StepFaults::StepFaults(
    World& world, Cluster& cluster, Faults& faults, std::uint64_t seed, bool aims)
    : world_(world),
      cluster_(cluster),
      faults_(faults)
#ifdef ADAMANT_FAILPOINTS
      ,
      handler_([this](std::string_view step) {
        Pass(step);
        return absl::OkStatus();
      })
#endif
{
  if (aims) {
    Aim(seed);
  }
}

void StepFaults::Aim(std::uint64_t seed) {
  Rng rng(MixSeed(seed, kAim));  // leaves the seed's other chances as they are
  for (const Step& step : Steps()) {
    const Plan plan{.fault = static_cast<StepFault>(rng.Below(kStepFaults)),
                    .after = rng.Below(static_cast<std::uint64_t>(step.passes) + 1)};
    if (rng.Uniform() < std::min(kWanted / step.share, kOftenest)) {
      plans_.emplace(step.name, plan);
    }
  }
}

bool StepFaults::RunNext() {
  const bool any = RunStep();
  if (const auto paused = std::exchange(paused_, std::nullopt)) {
    faults_.Pause(paused->life, paused->time);
  }
  return any;
}

bool StepFaults::RunStep() {
  try {
    return world_.scheduler.RunNext();
  } catch (const Died& died) {
    Crash(died.life);
    return true;
  }
}

void StepFaults::Pass(std::string_view step) {
  const LifePtr& life = world_.scheduler.running();
  if (life == nullptr || life->ended) {
    return;
  }
  ++passes_.try_emplace(std::string(step)).first->second;
  const auto plan = plans_.find(step);
  if (plan == plans_.end() || plan->second.after-- > 0) {
    return;
  }
  const StepFault fault = plan->second.fault;
  plans_.erase(plan);
  Inject(step, fault);
}

void StepFaults::Inject(std::string_view step, StepFault fault) {
  const LifePtr life = world_.scheduler.running();
  world_.scheduler.Record("fault", "at " + std::string(step) + ": " + std::string(NameOf(fault)));
  ++hits_[{std::string(step), fault}];
  switch (fault) {
    case StepFault::kPause:
      paused_ = {.life = life, .time = faults_.PauseTime()};
      life->paused_until = std::max(life->paused_until, world_.scheduler.Now() + paused_->time);
      return;
    case StepFault::kCrash:
      throw Died{life};
    case StepFault::kCutOff:
      return faults_.CutOff(life);
  }
}

void StepFaults::Crash(const LifePtr& life) {
  if (cluster_.controller() != nullptr && cluster_.controller()->life == life) {
    return faults_.CrashController();
  }
  for (MemberProcess* const member : cluster_.members()) {
    if (member->life == life) {
      return cluster_.Kill(*member, "dies in the midst of it");
    }
  }
}

}  // namespace adamant::simulation
