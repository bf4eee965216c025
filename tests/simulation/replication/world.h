#pragma once

#include <cstdint>

#include "tests/simulation/replication/checker.h"
#include "tests/simulation/replication/mutation.h"
#include "tests/simulation/replication/network.h"
#include "tests/simulation/replication/setup.h"
#include "tests/simulation/violations.h"

namespace adamant::replication_simulation {

/// What all of a simulation share.
struct World {
  World(std::uint64_t seed, Mutation mutation_in)
      : scheduler(seed),
        setup(DrawSetup(scheduler)),
        mutation(mutation_in),
        network(scheduler, setup),
        checker(scheduler, violations, setup) {}

  [[nodiscard]] bool Has(Mutation which) const { return mutation == which; }

  [[nodiscard]] Place controller_place() const { return setup.servers; }
  [[nodiscard]] Place writer_place(std::uint32_t writer) const {
    return setup.servers + 1 + writer;
  }

  Scheduler scheduler;
  const Setup setup;
  const Mutation mutation;
  simulation::Violations violations;
  Network network;
  Checker checker;
};

}  // namespace adamant::replication_simulation
