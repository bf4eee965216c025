#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/core/state/state.h"
#include "operator/local/checkpoints/saved_buckets.h"
#include "operator/local/model/trained_model.h"
#include "services/common/storage/kv_store.h"

namespace adamant::local {

/// Stores of parameter servers that have nothing but one checkpoint: those of a job that is to
/// begin with it. Threads: one.
class StartStores {
 public:
  /// A store lies in `folder`/parameter-server-SLOT, as in a run's data folder. `model` must
  /// outlive this.
  StartStores(std::filesystem::path folder, std::uint64_t job_uid, const TrainedModel& model);
  ~StartStores();

  /// Stores a bucket of checkpoint `snapshot` as the job's own, on the disk of the server `slot`.
  /// Returns how the controller is to know it. Errors: those of SegmentStore.
  absl::StatusOr<controller::CheckpointBucket> Put(std::uint64_t snapshot,
                                                   std::uint32_t slot,
                                                   const BucketContent& content);

 private:
  absl::StatusOr<storage::KvStore*> StoreOf(std::uint32_t slot);

  const std::filesystem::path folder_;
  const std::uint64_t job_uid_;
  const TrainedModel& model_;
  std::map<std::uint32_t, std::unique_ptr<storage::KvStore>> stores_;  // by slot
};

}  // namespace adamant::local
