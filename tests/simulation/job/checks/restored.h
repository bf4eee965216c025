#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/storage/kv_store.h"
#include "services/common/tensor/shard_layout.h"
#include "tests/simulation/job/setup/setup.h"

namespace adamant::simulation {

/// Values by shard.
using RestoredShards = std::map<ShardId, std::vector<float>>;

/// What a parameter server that comes up on this disk serves of these buckets: what a snapshot
/// holds, or if that is 0 what is live, with its log. A real server reads it; nothing is written.
/// Errors: DataLoss, saying what is missing or corrupt.
absl::StatusOr<RestoredShards> Restore(const Setup& setup,
                                       const Clock& clock,
                                       std::uint64_t job_uid,
                                       const storage::KvStore& disk,
                                       std::span<const BucketId> buckets,
                                       std::uint64_t snapshot);

}  // namespace adamant::simulation
