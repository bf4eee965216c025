#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "services/common/base/system/job_attempt.h"
#include "services/common/optimiser/optimiser.h"
#include "services/common/protocol/persistence_mode.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/replication/replica.h"
#include "services/parameter_server/core/shards/dirty_shards.h"
#include "services/parameter_server/core/storage/scrub.h"

namespace adamant::parameter_server {

using protocol::PersistenceMode;

struct ParameterServerOptions {
  std::uint64_t job_uid = 0;
  std::uint64_t attempt = 1;  ///< of training: writers of another are none
  ServerId self = {};
  std::uint32_t writers = 1;  ///< worker slots of the job; bounds the sequence tables
  std::uint64_t seed = 0;     ///< of the initial values
  std::vector<Parameter> parameters = {};
  std::uint32_t buckets = 1;
  std::vector<ParameterOptimiser> optimisers = {};  ///< one per parameter
  ReplicationTimes times = {};
  std::uint32_t min_in_sync = 1;
  PersistenceMode mode = PersistenceMode::kDelayed;
  FlushLimits flush = {};
  ScrubLimits scrub = {};
  std::string damage = {};  ///< why the store is an empty one in place of another; "": it is not
  std::string folder = {};  ///< of the store, for messages

  /// Returns the attempt of the job that is served.
  [[nodiscard]] JobAttempt job_attempt() const { return {.job_uid = job_uid, .attempt = attempt}; }
};

}  // namespace adamant::parameter_server
