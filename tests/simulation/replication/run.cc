#include "tests/simulation/replication/run.h"

#include "tests/simulation/replication/faults.h"
#include "tests/simulation/replication/processes/cluster.h"
#include "tests/simulation/replication/processes/world.h"
#include "tests/simulation/replication/steps.h"

namespace adamant::replication_simulation {
namespace {

/// The first fault comes when the buckets have their copies, mostly.
constexpr auto kCalm = std::chrono::seconds(8);

/// After the last fault, writers go on for this time, and all must be well after the other.
constexpr auto kWriteOn = std::chrono::seconds(50);
constexpr auto kRecovery = std::chrono::seconds(60);

/// Many times what a cluster takes.
constexpr std::uint64_t kMostEvents = 5'000'000;
constexpr std::size_t kMostPending = 20'000;

/// Of the seeds that are to put a fault at any one step.
constexpr double kAtStep = 0.1;

/// Runs until `done`, or something is wrong. `run_next`: as Scheduler::RunNext.
template <class RunNext, class Done>
void RunUntil(World& world, Cluster& cluster, RunNext run_next, Done done) {
  while (!done() && world.violations.first().empty() && !world.over) {
    if (!run_next() || world.scheduler.executed() > kMostEvents) {
      world.violations.Report("I13: it does not end");
    }
    if (world.scheduler.pending() > kMostPending) {
      world.violations.Report("I13: events pile up");
    }
    cluster.CheckStep();
  }
}

}  // namespace

Outcome RunSeed(std::uint64_t seed, Mutation mutation, bool aims) {
  World world(seed, mutation);
  const Clock::TimePoint begin = world.scheduler.Now();
  Cluster cluster(world);
  Faults faults(world, cluster);
  simulation::AimedFaults at_steps(
      world.scheduler,
      {.pause_time = [&](const LifePtr&) { return faults.PauseTime(); },
       .pause = [&](const LifePtr& life, Clock::Duration time) { faults.Pause(life, time); },
       .crash = [&](const LifePtr& life) { faults.Crash(life); },
       .cut_off = [&](const LifePtr& life) { faults.CutOff(life); }});
  if (aims) {
    at_steps.Aim(Steps(), kAtStep, seed);
  }
  const auto run_next = [&at_steps] { return at_steps.RunNext(); };
  world.scheduler.After(kCalm, nullptr, [&faults] { faults.PlanNext(); });
  RunUntil(world, cluster, run_next, [&] { return faults.over(); });
  at_steps.Stop();
  faults.Heal();
  const Clock::TimePoint healed = world.scheduler.Now();
  world.scheduler.After(kWriteOn, nullptr, [&cluster] { cluster.StopWriters(); });
  RunUntil(world, cluster, run_next, [&] { return world.scheduler.Now() >= healed + kRecovery; });
  if (world.violations.first().empty() && !world.over) {
    cluster.CheckRecovered();
  }
  Outcome outcome;
  outcome.violation = world.violations.first();
  outcome.hash = world.scheduler.hash();
  outcome.events = world.scheduler.executed();
  outcome.faults = faults.injected();
  outcome.virtual_time = world.scheduler.Now() - begin;
  outcome.acknowledged = world.checker.acknowledged();
  outcome.rolled_back = world.checker.rolled_back();
  outcome.records = world.checker.records().stored();
  outcome.passes = at_steps.passes();
  outcome.hits = at_steps.hits();
  if (!outcome.violation.empty()) {
    outcome.story = world.setup.Describe() + "\n" + world.scheduler.LastEvents();
  }
  return outcome;
}

Trace TraceSeed(std::uint64_t seed, Mutation mutation) {
  Tracer tracer;
  World world(seed, mutation, &tracer);
  Cluster cluster(world);
  Faults faults(world, cluster);
  faults.PlanNext();
  const auto ended = [&] { return tracer.useless() || tracer.full(); };
  const auto run_next = [&world] { return world.scheduler.RunNext(); };
  RunUntil(world, cluster, run_next, [&] { return ended() || faults.over(); });
  faults.Heal();
  const Clock::TimePoint healed = world.scheduler.Now();
  RunUntil(world, cluster, run_next, [&] {
    return ended() || world.scheduler.Now() >= healed + seconds(10);
  });
  return {.text = tracer.useless() ? "" : tracer.text(), .violation = world.violations.first()};
}

}  // namespace adamant::replication_simulation
