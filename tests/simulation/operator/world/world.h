#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "operator/kube_client/api/client.h"
#include "operator/kube_client/api/resource.h"
#include "operator/kube_client/base/sleeper.h"
#include "services/common/base/rng.h"
#include "tests/fakes/kube/memory_api_server.h"
#include "tests/simulation/engine/scheduler.h"
#include "tests/simulation/engine/violations.h"
#include "tests/simulation/operator/world/mutation.h"

namespace adamant::orchestration {

using simulation::Life;
using simulation::LifePtr;
using simulation::milliseconds;
using simulation::seconds;

inline constexpr char kNamespace[] = "team";
inline constexpr char kJobName[] = "mnist";
inline const kube::ObjectKey kJobKey{kNamespace, kJobName};

/// Of the seeds made from a run's: whether nodes are crowded, and ids.
inline constexpr std::uint64_t kRoom = 1;
inline constexpr std::uint64_t kIds = 2;

/// Nobody waits inside a request: rates are not limited, and requests are not tried again.
class NoSleep final : public kube::Sleeper {
 public:
  bool Sleep(Clock::Duration /*time*/, const kube::Cancellation& /*unused*/) override {
    return true;
  }
};

/// What all parts of one simulated cluster share.
struct World {
  World(std::uint64_t seed, Mutation fault)
      : scheduler(seed), ids(MixSeed(seed, kIds)), api(scheduler), mutation(fault) {}

  [[nodiscard]] kube::Client ClientOn(kube::Transport& transport) {
    return kube::Client(transport, scheduler, sleeper, {.rate = 1e9, .burst = 1e9})
        .WithoutRetries();
  }

  simulation::Scheduler scheduler;
  Rng ids;  ///< of jobs and of those who write their state
  simulation::Violations violations;
  kube::MemoryApiServer api;
  NoSleep sleeper;
  const Mutation mutation;
  bool delayed = false;   ///< a request is carried out that its sender has given up
  bool repeated = false;  ///< one is carried out again that had no answer, and may have been before
  bool spreads = false;   ///< operators see that there are nodes without parameter servers
  std::map<std::string, std::uint64_t> changed;  ///< the API's version, by the path of a collection

  /// Of users and of Kubernetes' own parts: its requests do not fail.
  const kube::Client admin = ClientOn(api);
};

}  // namespace adamant::orchestration
