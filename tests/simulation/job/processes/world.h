#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "services/common/base/ids.h"
#include "tests/simulation/engine/disk.h"
#include "tests/simulation/engine/scheduler.h"
#include "tests/simulation/engine/violations.h"
#include "tests/simulation/job/checks/job_checker.h"
#include "tests/simulation/job/checks/update_checker.h"
#include "tests/simulation/job/checks/work_checker.h"
#include "tests/simulation/job/network/network.h"
#include "tests/simulation/job/setup/mutation.h"
#include "tests/simulation/job/setup/setup.h"

namespace adamant::simulation {

/// Where the controller listens, whichever process it is.
inline constexpr char kControllerAddress[] = "controller";

/// What seeded faults bring back after the job went back.
struct Before {
  struct OldPush {
    std::uint64_t attempt = 0;
    parameter_server::Push push;
    std::shared_ptr<PushFrame> frame;
  };
  std::map<std::uint32_t, std::vector<OldPush>> pushes;  ///< by parameter server, in their order
  std::map<std::string, std::string> ledgers;            ///< by key of their records
};

/// All that the processes of one simulation share.
struct World {
  World(std::uint64_t seed, Mutation mutation_in)
      : mutation(mutation_in),
        setup(seed),
        scheduler(seed),
        network(scheduler),
        job(setup, violations),
        disks(setup.job.parameter_servers),
        updates(setup, scheduler, violations, disks),
        work(setup, violations) {}

  /// Whether this fault is put in.
  [[nodiscard]] bool Has(Mutation which) const { return mutation == which; }

  const Mutation mutation;
  const Setup setup;
  Violations violations;
  Scheduler scheduler;
  Network network;
  JobChecker job;
  std::vector<Disk> disks;  ///< of parameter servers, by slot
  UpdateChecker updates;
  WorkChecker work;
  Before before;
  std::map<BucketId, ConfigurationVersion> served;  ///< the last in which a primary has served
};

}  // namespace adamant::simulation
