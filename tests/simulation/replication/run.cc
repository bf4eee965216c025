#include "tests/simulation/replication/run.h"

#include "tests/simulation/replication/cluster.h"
#include "tests/simulation/replication/faults.h"
#include "tests/simulation/replication/world.h"

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

/// Runs until `done`, or something is wrong.
template <class Done>
void RunUntil(World& world, Cluster& cluster, Done done) {
  while (!done() && world.violations.first().empty() && !world.over) {
    if (!world.scheduler.RunNext() || world.scheduler.executed() > kMostEvents) {
      world.violations.Report("I13: it does not end");
    }
    if (world.scheduler.pending() > kMostPending) {
      world.violations.Report("I13: events pile up");
    }
    cluster.CheckStep();
  }
}

}  // namespace

Outcome RunSeed(std::uint64_t seed, Mutation mutation) {
  World world(seed, mutation);
  const Clock::TimePoint begin = world.scheduler.Now();
  Cluster cluster(world);
  Faults faults(world, cluster);
  world.scheduler.After(kCalm, nullptr, [&faults] { faults.PlanNext(); });
  RunUntil(world, cluster, [&] { return faults.over(); });
  faults.Heal();
  const Clock::TimePoint healed = world.scheduler.Now();
  world.scheduler.After(kWriteOn, nullptr, [&cluster] { cluster.StopWriters(); });
  RunUntil(world, cluster, [&] { return world.scheduler.Now() >= healed + kRecovery; });
  if (world.violations.first().empty() && !world.over) {
    cluster.CheckRecovered();
  }
  Outcome outcome{.violation = world.violations.first(),
                  .story = {},
                  .hash = world.scheduler.hash(),
                  .events = world.scheduler.executed(),
                  .faults = faults.injected(),
                  .acknowledged = world.checker.acknowledged(),
                  .rolled_back = world.checker.rolled_back(),
                  .virtual_time = world.scheduler.Now() - begin};
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
  RunUntil(world, cluster, [&] { return ended() || faults.over(); });
  faults.Heal();
  const Clock::TimePoint healed = world.scheduler.Now();
  RunUntil(
      world, cluster, [&] { return ended() || world.scheduler.Now() >= healed + seconds(10); });
  return {.text = tracer.useless() ? "" : tracer.text(), .violation = world.violations.first()};
}

}  // namespace adamant::replication_simulation
