#pragma once

#include <cstdint>

#include "tests/simulation/engine/violations.h"
#include "tests/simulation/replication/checks/checker.h"
#include "tests/simulation/replication/world/loss_window.h"
#include "tests/simulation/replication/world/mutation.h"
#include "tests/simulation/replication/world/network.h"
#include "tests/simulation/replication/world/setup.h"
#include "tests/simulation/replication/world/tracer.h"

namespace adamant::replication_simulation {

/// What all of a simulation share.
struct World {
  /// With a tracer: a small world, of the kind that it can describe.
  World(std::uint64_t seed_in, Mutation mutation_in, Tracer* tracer_in = nullptr)
      : seed(seed_in),
        scheduler(seed_in),
        setup(tracer_in == nullptr ? DrawSetup(scheduler) : DrawSmallSetup(scheduler)),
        mutation(mutation_in),
        tracer(tracer_in),
        network(scheduler, setup),
        loss_window(setup),
        checker(scheduler, violations, setup) {}

  [[nodiscard]] bool Has(Mutation which) const { return mutation == which; }

  [[nodiscard]] Place controller_place() const { return setup.servers; }
  [[nodiscard]] Place writer_place(std::uint32_t writer) const {
    return setup.servers + 1 + writer;
  }

  [[nodiscard]] Place clerk_place(std::uint32_t clerk) const {
    return writer_place(setup.writers) + clerk;
  }
  /// Of a process of this slot whose volume is attached elsewhere.
  [[nodiscard]] Place left_place(std::uint32_t slot) const {
    return clerk_place(setup.clerks) + slot;
  }

  [[nodiscard]] Place foreman_place() const { return left_place(setup.servers); }

  const std::uint64_t seed;
  Scheduler scheduler;
  const Setup setup;
  const Mutation mutation;
  Tracer* const tracer;  // may be null
  simulation::Violations violations;
  bool over = false;  // the job has failed, as it may
  Network network;
  LossWindow loss_window;
  Checker checker;
};

}  // namespace adamant::replication_simulation
