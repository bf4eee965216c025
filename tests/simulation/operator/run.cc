#include "tests/simulation/operator/run.h"

#include "services/common/base/rng.h"
#include "tests/simulation/operator/cluster.h"
#include "tests/simulation/operator/faults.h"

namespace adamant::orchestration {
namespace {

/// Once nothing goes wrong any more, the job must end within this time, and be gone once deleted.
constexpr std::chrono::minutes kTimeout{10};
constexpr std::chrono::minutes kGoneTimeout{2};
constexpr seconds kAtRest{40};

/// How long nodes are crowded: longer than anything else goes wrong, and short enough for the wait
/// that doubles with each start that fails meanwhile to stay far below kTimeout.
constexpr seconds kCrowded{120};

/// After this no request is under way any more that was sent before.
constexpr seconds kLate{9};
constexpr seconds kSettled{2};

// Nothing goes wrong any more: the job gets the workers that it wants, and no more.
void CheckWorkers(Cluster& cluster) {
  const auto has_ended = [&] {
    const controller::JobState* state = cluster.checker.StateOf(cluster.user.uid());
    return state != nullptr && controller::IsFinal(state->phase) &&
           state->phase != controller::Phase::kSuspended;
  };
  if (has_ended()) {
    return;
  }
  cluster.RunFor(kLate);
  cluster.RunUntil([&] { return has_ended() || cluster.user.HasItsWorkers(); },
                   kTimeout,
                   "the job does not get the workers that it wants");
  cluster.RunFor(kSettled);
  if (cluster.user.HasSurplusWorkers()) {
    cluster.world.violations.Report("the job has more workers than it wants" + cluster.Details());
  }
}

// The job ends: nothing of it runs, and all was counted.
void CheckEnd(Cluster& cluster, Outcome& outcome) {
  User& user = cluster.user;
  const auto has_ended = [&] {
    const controller::JobState* state = cluster.checker.StateOf(user.uid());
    return state != nullptr && controller::IsFinal(state->phase) && user.HasEnded();
  };
  cluster.RunUntil(has_ended, kTimeout, "the job does not end");
  cluster.RunUntil(
      [&] { return cluster.nodes.idle(); }, kGoneTimeout, "processes of an ended job run on");
  cluster.RunFor(kAtRest);
  outcome.phase = user.PhaseNow();
  if (const controller::JobState* state = cluster.checker.StateOf(user.uid())) {
    outcome.restarts = state->restarts;
    if (outcome.phase == "Failed" && outcome.restarts < user.restart_limit() &&
        !cluster.checker.MayFail(user.uid())) {
      cluster.world.violations.Report("the job failed: " + state->message);
    }
  }
  for (const auto& process : cluster.operators) {
    if (process->leads()) {
      outcome.writes = process->transport().writes();
    }
  }
  cluster.checker.CheckLosses(user.uid());
}

// Once the job is deleted all is gone.
void CheckDeletion(Cluster& cluster) {
  User& user = cluster.user;
  user.Delete();
  cluster.RunUntil([&] { return user.Belongings().empty() && cluster.nodes.idle(); },
                   kGoneTimeout,
                   "something is left of a deleted job");
  cluster.RunFor(kAtRest);
  if (!user.Belongings().empty()) {
    cluster.world.violations.Report("something of a deleted job came back" + cluster.Details());
  }
}

void Conclude(Cluster& cluster, Outcome& outcome) {
  if (cluster.user.wants_forever()) {
    outcome.phase = cluster.user.PhaseNow();
  } else {
    CheckEnd(cluster, outcome);
  }
  CheckDeletion(cluster);
  World& world = cluster.world;
  outcome.violation = world.violations.first();
  outcome.hash = world.scheduler.hash();
  outcome.events = world.scheduler.executed();
  outcome.requests = world.api.requests();
  outcome.virtual_time = world.scheduler.Now().time_since_epoch() - std::chrono::hours(1);
  if (!outcome.violation.empty() || outcome.restarts > 0) {
    outcome.story = cluster.user.Describe() + "\n" + world.scheduler.LastEvents();
  }
}

}  // namespace

Outcome RunSeed(std::uint64_t seed, Mutation mutation) {
  Outcome outcome;
  Cluster cluster(seed, mutation);
  Faults faults(cluster.world, cluster.operators, cluster.network, cluster.nodes, cluster.user);
  if (cluster.world.scheduler.Chance(0.15)) {
    cluster.user.WantForever();
  }
  Rng room(MixSeed(seed, kRoom));
  if (room.Below(10) < 3) {
    cluster.user.WantStartWithin(seconds(5 + room.Below(25)));
    cluster.nodes.SetCrowded(kCrowded);
  }
  cluster.user.Apply();
  faults.Begin();
  cluster.RunUntil([&] { return faults.over(); }, std::chrono::hours(1), "faults do not end");
  CheckWorkers(cluster);
  Conclude(cluster, outcome);
  outcome.faults = faults.injected();
  return outcome;
}

Outcome RunWithCrashes(std::uint64_t seed, const std::vector<LeaderCrash>& crashes) {
  Outcome outcome;
  Cluster cluster(seed);
  cluster.user.Apply();
  std::size_t leader = 0;
  for (const LeaderCrash& crash : crashes) {
    OperatorProcess& process = *cluster.operators[leader];
    const int before = process.crashes();
    process.CrashAtWrite(crash.write, crash.after);
    process.Lead();
    cluster.RunUntil([&] { return process.crashes() > before; },
                     kTimeout,
                     "the leader does not get to its write " + std::to_string(crash.write));
    leader = (leader + 1) % cluster.operators.size();
  }
  cluster.operators[leader]->Lead();
  Conclude(cluster, outcome);
  return outcome;
}

}  // namespace adamant::orchestration
