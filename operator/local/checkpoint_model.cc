#include "operator/local/checkpoint_model.h"

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "operator/local/checkpoint_file.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/job/job.h"
#include "services/common/job/optimiser_of.h"
#include "services/common/optimiser/optimiser.h"
#include "services/common/storage/segment_store.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/snapshots.h"

namespace adamant::local {
namespace {

// The stores of a run's parameter servers, opened as they are needed.
class Stores {
 public:
  explicit Stores(const RunPaths& paths) : paths_(paths) {}

  absl::StatusOr<storage::KvStore*> Of(std::uint32_t slot) {
    if (const auto found = stores_.find(slot); found != stores_.end()) {
      return found->second.get();
    }
    const std::filesystem::path folder = paths_.store_of(slot) / "shards";
    if (std::error_code error; !std::filesystem::exists(folder, error)) {
      return absl::DataLossError(folder.string() + " is missing");
    }
    ADAMANT_ASSIGN_OR_RETURN(auto store, storage::SegmentStore::Open(folder));
    return stores_.emplace(slot, std::move(store)).first->second.get();
  }

 private:
  const RunPaths& paths_;
  std::map<std::uint32_t, std::unique_ptr<storage::KvStore>> stores_;
};

// Reads one checkpoint.
class Reader {
 public:
  Reader(const Manifest& manifest,
         const ShardLayout& layout,
         const std::vector<ParameterOptimiser>& optimisers,
         Stores& stores)
      : manifest_(manifest), layout_(layout), optimisers_(optimisers), stores_(stores) {}

  absl::StatusOr<std::vector<float>> Read() {
    std::vector<float> weights(layout_.elements());
    for (const Shard& shard : layout_.shards()) {
      if (shard.bucket >= manifest_.checkpoint.buckets.size()) {
        return absl::DataLossError("the manifest has too few buckets");
      }
      ADAMANT_RETURN_IF_ERROR(CheckBucket(shard.bucket));
      ADAMANT_RETURN_IF_ERROR(ReadShard(shard, weights));
    }
    return weights;
  }

 private:
  absl::StatusOr<parameter_server::Snapshots> SnapshotsOf(std::uint32_t bucket) {
    ADAMANT_ASSIGN_OR_RETURN(storage::KvStore * store,
                             stores_.Of(manifest_.checkpoint.buckets[bucket].slot));
    return parameter_server::Snapshots(manifest_.job_uid, *store);
  }

  // The copy on disk is the one that the manifest names.
  absl::Status CheckBucket(std::uint32_t bucket) {
    ADAMANT_ASSIGN_OR_RETURN(const parameter_server::Snapshots snapshots, SnapshotsOf(bucket));
    ADAMANT_ASSIGN_OR_RETURN(const auto found,
                             snapshots.Find(manifest_.checkpoint.snapshot, bucket));
    const controller::CheckpointBucket& expected = manifest_.checkpoint.buckets[bucket];
    if (!found || found->generation != expected.generation || found->updates != expected.updates ||
        found->checksum != expected.checksum) {
      return absl::DataLossError("bucket " + std::to_string(bucket) +
                                 (found ? " is not the one of the manifest" : " is missing"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadShard(const Shard& shard, std::vector<float>& weights) {
    const ParameterOptimiser& optimiser = optimisers_[shard.tensor];
    const bool has_state = optimiser.location == OptimiserLocation::kServer;
    const parameter_server::ShardIdentity identity{
        .job_uid = manifest_.job_uid,
        .shard = shard.id,
        .values = shard.size(),
        .state = has_state ? shard.size() * StatePerWeight(optimiser.kind) : 0};
    ADAMANT_ASSIGN_OR_RETURN(const parameter_server::Snapshots snapshots,
                             SnapshotsOf(shard.bucket));
    ADAMANT_ASSIGN_OR_RETURN(const parameter_server::ShardValue value,
                             snapshots.Read(manifest_.checkpoint.snapshot, shard.bucket, identity));
    if (value.outcome != parameter_server::FetchOutcome::kFound) {
      return absl::DataLossError("shard " + std::to_string(shard.id) + " is missing");
    }
    const std::uint64_t begin = layout_.OffsetOf(shard.tensor) + shard.begin;
    std::ranges::copy(value.values, weights.begin() + static_cast<std::ptrdiff_t>(begin));
    return absl::OkStatus();
  }

  const Manifest& manifest_;
  const ShardLayout& layout_;
  const std::vector<ParameterOptimiser>& optimisers_;
  Stores& stores_;
};

}  // namespace

absl::StatusOr<ModelFile> ReadCheckpointModel(const v1::TrainingJob& job, const RunPaths& paths) {
  ADAMANT_ASSIGN_OR_RETURN(const RunLock lock, RunLock::Acquire(paths));
  ADAMANT_ASSIGN_OR_RETURN(const std::vector<Manifest> manifests, ReadManifests(paths));
  ADAMANT_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(job::NetOf(job)));
  v1::TrainingJob counted = job;
  job::CountProgressInExamples(1, counted);  // the kinds of the optimisers do not depend on it
  ADAMANT_ASSIGN_OR_RETURN(const auto optimisers, job::OptimisersOf(counted, graph.parameters));
  const ShardLayout layout(
      graph.parameters,
      static_cast<std::uint32_t>(job.spec().distribution().parameter_servers().buckets()));
  Stores stores(paths);
  absl::Status newest;
  for (const Manifest& manifest : manifests) {
    absl::StatusOr<std::vector<float>> weights =
        Reader(manifest, layout, optimisers, stores).Read();
    if (weights.ok()) {
      return ModelFile{.metadata = {{"job", job.metadata().name()},
                                    {"epoch", std::to_string(manifest.checkpoint.epoch)},
                                    {"checkpoint", std::to_string(manifest.checkpoint.snapshot)}},
                       .weights = *std::move(weights)};
    }
    newest.Update(absl::DataLossError("checkpoint " + std::to_string(manifest.checkpoint.snapshot) +
                                      " is not valid: " + std::string(weights.status().message())));
  }
  return newest;
}

}  // namespace adamant::local
