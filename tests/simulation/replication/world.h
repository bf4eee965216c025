#pragma once

#include <cstdint>

#include "tests/simulation/replication/checker.h"
#include "tests/simulation/replication/mutation.h"
#include "tests/simulation/replication/network.h"
#include "tests/simulation/replication/setup.h"
#include "tests/simulation/replication/tracer.h"
#include "tests/simulation/violations.h"

namespace adamant::replication_simulation {

/// What all of a simulation share.
struct World {
  /// With a tracer: a small world, of the kind that it can describe.
  World(std::uint64_t seed, Mutation mutation_in, Tracer* tracer_in = nullptr)
      : scheduler(seed),
        setup(tracer_in == nullptr ? DrawSetup(scheduler) : DrawSmallSetup(scheduler)),
        mutation(mutation_in),
        tracer(tracer_in),
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
  Tracer* const tracer;  // may be null
  simulation::Violations violations;
  bool over = false;  // the job has failed, as it may
  Network network;
  Checker checker;
};

}  // namespace adamant::replication_simulation
