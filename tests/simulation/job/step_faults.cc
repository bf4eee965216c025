#include "tests/simulation/job/step_faults.h"

#include "tests/simulation/job/steps.h"

namespace adamant::simulation {
namespace {

// How many seeds of a thousand are to put a fault at a step.
constexpr double kWanted = 0.04;

}  // namespace

StepFaults::StepFaults(
    World& world, Cluster& cluster, Faults& faults, std::uint64_t seed, bool aims)
    : cluster_(cluster),
      faults_(faults),
      histories_(world, cluster, faults, seed),
      aimed_(world.scheduler,
             {.pause_time = [this](const LifePtr& life) { return faults_.PauseTime(life); },
              .pause = [this](const LifePtr& life,
                              Clock::Duration time) { faults_.Pause(life, time); },
              .crash = [this](const LifePtr& life) { Crash(life); },
              .cut_off = [this](const LifePtr& life) { faults_.CutOff(life); },
              .passed =
                  [this, aims](std::string_view step, const LifePtr& life) {
                    if (aims) {
                      histories_.Passed(step, life);
                    }
                  }}) {
  if (aims) {
    aimed_.Aim(Steps(), kWanted, seed);
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
