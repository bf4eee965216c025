#include "tests/simulation/disk.h"

#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/shard_record.h"

namespace adamant::simulation {

absl::Status Disk::LoseSnapshots() {
  std::vector<storage::Change> changes;
  for (const std::string prefix : {"snapshot/", "snapshots/"}) {
    changes.push_back({.key = prefix, .value = "", .erase = true, .end = prefix + "\xff"});
  }
  return store_.Write(changes);
}

absl::StatusOr<std::vector<float>> Disk::ReadShard(std::uint64_t job_uid, ShardId shard) const {
  ADAMANT_ASSIGN_OR_RETURN(const std::string stored,
                           store_.Get(parameter_server::LiveShardKey(shard)));
  ADAMANT_ASSIGN_OR_RETURN(
      const parameter_server::ShardRecord record,
      parameter_server::DecodeShard(
          {.job_uid = job_uid, .shard = shard, .values = Setup::kElements}, stored));
  return std::vector<float>(record.values.begin(), record.values.end());
}

}  // namespace adamant::simulation
