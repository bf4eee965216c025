#include "tests/simulation/job/run.h"

#include <algorithm>

#include "tests/simulation/job/cluster.h"
#include "tests/simulation/job/faults.h"
#include "tests/simulation/job/processes/world.h"

namespace adamant::simulation {
namespace {

/// After the last fault, the job must end within this time. The longest backoff is a minute.
constexpr auto kTimeout = std::chrono::minutes(20);

constexpr std::size_t kMostPending = 20'000;

/// Many times what a job takes.
constexpr std::uint64_t kMostEvents = 1'000'000;

// Any worker, at any time.
void PlanDivergences(World& world, Cluster& cluster) {
  const std::uint64_t batches =
      world.setup.train_examples / world.setup.batch_size * world.setup.job.epochs;
  const Clock::Duration whole = world.setup.step_time / 2 * static_cast<std::int64_t>(batches) /
                                static_cast<std::int64_t>(world.setup.job.workers);
  for (std::uint32_t i = 0; i < world.setup.divergences; ++i) {
    world.scheduler.After(world.scheduler.Random(milliseconds(1), whole), nullptr, [&] {
      for (MemberProcess* const member : cluster.members()) {
        if (member->start().id.role == controller::Role::kWorker) {
          world.scheduler.Record(member->life->name, "diverges");
          return member->Diverge();
        }
      }
    });
  }
}

void CheckQueues(World& world) {
  if (world.scheduler.pending() > kMostPending) {
    world.violations.Report("more than " + std::to_string(kMostPending) + " events are pending");
  }
  if (world.network.most_in_flight() > Network::kMostInFlight) {
    world.violations.Report("messages pile up from " + world.network.busiest());
  }
}

void CheckEnd(World& world, Cluster& cluster) {
  const controller::JobState& state = cluster.controller()->state();
  if (state.phase != controller::Phase::kSucceeded) {
    world.violations.Report("the job failed: " + state.message);
  }
  cluster.KillAll();
  cluster.CheckDisks();
}

}  // namespace

Outcome RunSeed(std::uint64_t seed, Mutation mutation, bool aims) {
  World world(seed, mutation);
  Cluster cluster(world);
  Faults faults(world, cluster);
  StepFaults at_steps(world, cluster, faults, seed, aims);
  const Clock::TimePoint begin = world.scheduler.Now();
  cluster.StartController();
  faults.PlanNext();
  PlanDivergences(world, cluster);
  while (world.violations.first().empty() && !cluster.finished()) {
    if (!at_steps.RunNext() || world.scheduler.executed() > kMostEvents ||
        world.scheduler.Now() > std::max(begin, faults.over_at()) + kTimeout) {
      world.violations.Report("the job does not end");
    }
    cluster.Bury();
    CheckQueues(world);
  }
  if (cluster.finished() && world.violations.first().empty()) {
    CheckEnd(world, cluster);
  }
  Outcome outcome;
  outcome.violation = world.violations.first();
  outcome.hash = world.scheduler.hash();
  outcome.events = world.scheduler.executed();
  outcome.faults = faults.injected();
  outcome.virtual_time = world.scheduler.Now() - begin;
  outcome.trained = world.updates.trained();
  outcome.lost = world.updates.lost();
  outcome.passes = at_steps.passes();
  outcome.hits = at_steps.hits();
  if (!outcome.violation.empty()) {
    outcome.story = world.setup.Describe() + "\n" + world.scheduler.LastEvents();
  }
  return outcome;
}

}  // namespace adamant::simulation
