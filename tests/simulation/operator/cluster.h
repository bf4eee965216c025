#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/operator/checker.h"
#include "tests/simulation/operator/cluster/network.h"
#include "tests/simulation/operator/cluster/nodes.h"
#include "tests/simulation/operator/cluster/operator_process.h"
#include "tests/simulation/operator/user.h"
#include "tests/simulation/operator/world/world.h"

namespace adamant::orchestration {

/// A simulated cluster with two operators, of which the first leads, and a user. What must never
/// happen ends up in world.violations, at which time stands still.
struct Cluster {
  explicit Cluster(std::uint64_t seed, Mutation mutation = Mutation::kNone);

  /// The next event; false when there is none, or something has been violated.
  bool Step();

  /// Runs until `done`, which is asked a few times a second; reports `otherwise` after `timeout`.
  template <class Done>
  void RunUntil(const Done& done, Clock::Duration timeout, const std::string& otherwise) {
    const Clock::TimePoint end = world.scheduler.Now() + timeout;
    Clock::TimePoint next = world.scheduler.Now();
    while (Step()) {
      if (world.scheduler.Now() < next) {
        continue;
      }
      next = world.scheduler.Now() + milliseconds(200);
      if (done()) {
        return;
      }
      if (next > end) {
        world.violations.Report(otherwise + Details());
      }
    }
  }

  void RunFor(Clock::Duration time);

  /// The first operator dies, another leads.
  void ChangeLeader();

  /// What there is of the job, for those who wonder.
  [[nodiscard]] std::string Details() const;

  /// Time passes though nothing else happens.
  void Tick() {
    world.scheduler.After(seconds(1), nullptr, [this] { Tick(); });
  }

  World world;
  Network network{world};
  Checker checker{world};
  Nodes nodes{world, network, checker};
  User user{world, checker};
  std::vector<std::unique_ptr<OperatorProcess>> operators;
};

}  // namespace adamant::orchestration
