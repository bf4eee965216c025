#include "services/common/job/replication_of.h"

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/durations.h"

namespace adamant::job {
namespace {

PersistenceMode ModeOf(v1::Persistence::Mode mode) {
  switch (mode) {
    case v1::Persistence::MODE_WAL:
      return PersistenceMode::kWal;
    case v1::Persistence::MODE_WAL_SYNC:
      return PersistenceMode::kWalSync;
    case v1::Persistence::MODE_NONE:
      return PersistenceMode::kNone;
    default:
      return PersistenceMode::kDelayed;
  }
}

}  // namespace

Replication ReplicationOf(const v1::TrainingJob& job) {
  const v1::ParameterServers& servers = job.spec().distribution().parameter_servers();
  const v1::Failover& failover = servers.failover();
  const v1::Persistence& persistence = servers.persistence();
  return {.copies = static_cast<std::uint32_t>(servers.copies()),
          .min_in_sync = static_cast<std::uint32_t>(servers.min_in_sync()),
          .beacon = ToNanoseconds(failover.beacon()),
          .lease = ToNanoseconds(failover.lease()),
          .grace = ToNanoseconds(failover.grace()),
          .mode = ModeOf(persistence.mode()),
          .flush_interval = ToNanoseconds(persistence.flush_interval()),
          .flush_bytes = static_cast<std::uint64_t>(persistence.flush_bytes()),
          .retain_bytes = static_cast<std::uint64_t>(persistence.retain())};
}

}  // namespace adamant::job
