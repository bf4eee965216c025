#include "operator/local/model/checkpoint_model.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "operator/local/model/fetch_model.h"
#include "operator/local/model/trained_model.h"
#include "operator/local/run_folder/checkpoint_file.h"
#include "operator/local/state/run_status.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/checkpoint/snapshot_store.h"
#include "services/common/storage/segments/segment_store.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::local {
namespace {

// A job that runs may drop a checkpoint for a newer one while it is read.
constexpr int kTries = 3;

constexpr char kCopyIt[] =
    ". Its stores are opened as for training: copy the run's folder to a disk that has room and "
    "may be written";

// The stores of a run's parameter servers, opened as they are needed.
class Stores {
 public:
  explicit Stores(const RunPaths& paths) : paths_(paths) {}

  absl::StatusOr<storage::KvStore*> Of(std::uint32_t slot) {
    if (const auto found = stores_.find(slot); found != stores_.end()) {
      return found->second.get();
    }
    const std::filesystem::path folder = paths_.shards_of(slot);
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
  Reader(const CheckpointManifest& manifest, const TrainedModel& model, Stores& stores)
      : manifest_(manifest), model_(model), stores_(stores) {}

  absl::StatusOr<std::vector<float>> Read() {
    std::vector<float> weights(model_.layout.elements());
    for (const Shard& shard : model_.layout.shards()) {
      if (shard.bucket >= manifest_.checkpoint.buckets.size()) {
        return absl::DataLossError("the manifest has too few buckets");
      }
      ADAMANT_RETURN_IF_ERROR(CheckBucket(shard.bucket));
      ADAMANT_RETURN_IF_ERROR(ReadShard(shard, weights));
    }
    return weights;
  }

 private:
  absl::StatusOr<checkpoint::SnapshotStore> SnapshotsOf(BucketId bucket) {
    ADAMANT_ASSIGN_OR_RETURN(storage::KvStore * store,
                             stores_.Of(manifest_.checkpoint.buckets[bucket].slot));
    return checkpoint::SnapshotStore(manifest_.job_uid, *store);
  }

  // The copy on disk is the one that the manifest names.
  absl::Status CheckBucket(BucketId bucket) {
    ADAMANT_ASSIGN_OR_RETURN(const checkpoint::SnapshotStore snapshots, SnapshotsOf(bucket));
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
    const checkpoint::ShardIdentity identity = model_.IdentityOf(manifest_.job_uid, shard);
    ADAMANT_ASSIGN_OR_RETURN(const checkpoint::SnapshotStore snapshots, SnapshotsOf(shard.bucket));
    ADAMANT_ASSIGN_OR_RETURN(
        const auto stored,
        snapshots.ReadShard(manifest_.checkpoint.snapshot, shard.bucket, identity));
    if (!stored.has_value()) {
      return absl::DataLossError("shard " + std::to_string(shard.id) + " is missing");
    }
    const std::uint64_t begin = model_.layout.OffsetOf(shard.tensor) + shard.begin;
    std::ranges::copy(stored->record.values, weights.begin() + static_cast<std::ptrdiff_t>(begin));
    return absl::OkStatus();
  }

  const CheckpointManifest& manifest_;
  const TrainedModel& model_;
  Stores& stores_;
};

// Of a run in whose checkpoints/ is no manifest: `none` where nothing has been there, else what is
// gone.
absl::Status WhatIsGone(const RunPaths& paths, std::uint64_t checkpoint, const absl::Status& none) {
  const absl::StatusOr<RunStatus> run = ReadRunStatus(paths.root);
  const std::uint64_t newest = run.ok() ? run->report.checkpoint : 0;
  const std::string root = paths.root.string();
  const std::string number = std::to_string(checkpoint);
  if (newest == 0) {
    return checkpoint == 0 ? none
                           : absl::NotFoundError(root + " holds no checkpoint " + number +
                                                 ": none has been taken yet");
  }
  const std::string what =
      checkpoint == 0 ? "model any more" : "checkpoint " + number + " any more";
  const bool is_over = run->report.phase == controller::Phase::kSucceeded;
  return absl::NotFoundError(
      root + " holds no " + (checkpoint > newest ? "checkpoint " + number : what) + ": " +
      paths.checkpoints().string() + ", which names those there are, is empty; the newest was " +
      std::to_string(newest) +
      (is_over ? "" : ", which adamant train --resume " + root + " names again"));
}

// The manifests to try, the newest first: only the one of `checkpoint` if that is not 0.
absl::StatusOr<std::vector<CheckpointManifest>> ManifestsOf(const RunPaths& paths,
                                                            std::uint64_t checkpoint) {
  absl::StatusOr<std::vector<CheckpointManifest>> read = ReadCheckpointManifests(paths);
  if (std::error_code error;
      absl::IsNotFound(read.status()) && std::filesystem::exists(paths.checkpoints(), error)) {
    return WhatIsGone(paths, checkpoint, read.status());
  }
  ADAMANT_ASSIGN_OR_RETURN(std::vector<CheckpointManifest> manifests, std::move(read));
  if (checkpoint == 0) {
    return manifests;
  }
  std::string names;
  for (const CheckpointManifest& manifest : manifests) {
    if (manifest.checkpoint.snapshot == checkpoint) {
      return std::vector<CheckpointManifest>{manifest};
    }
    names += (names.empty() ? "" : ", ") + std::to_string(manifest.checkpoint.snapshot);
  }
  if (const absl::Status status = ReadCheckpointManifest(paths, checkpoint).status();
      !status.ok() && !absl::IsNotFound(status)) {
    return status;
  }
  return absl::NotFoundError(paths.root.string() + " holds no checkpoint " +
                             std::to_string(checkpoint) + "; it has " + names);
}

ModelFile FileOf(const v1::TrainingJob& job,
                 const CheckpointManifest& manifest,
                 std::vector<float> weights) {
  return {.metadata = {{"job", job.metadata().name()},
                       {"epoch", std::to_string(manifest.checkpoint.epoch)},
                       {"checkpoint", std::to_string(manifest.checkpoint.snapshot)}},
          .weights = std::move(weights)};
}

// A bucket is on as many servers as the job has copies.
bool HasDisksToGoOn(const v1::TrainingJob& job, const RunPaths& paths) {
  const v1::ParameterServers& servers = job.spec().distribution().parameter_servers();
  std::int32_t missing = 0;
  for (std::int32_t slot = 0; slot < servers.count(); ++slot) {
    std::error_code error;
    const std::filesystem::path folder = paths.shards_of(static_cast<std::uint32_t>(slot));
    missing += std::filesystem::exists(folder, error) ? 0 : 1;
  }
  return missing < servers.copies();
}

// Of each bucket of a checkpoint one server alone has it, but others may have what is live: a run
// that goes on makes another.
std::string HowToGetAnother(const v1::TrainingJob& job, const RunPaths& paths) {
  const std::string anew = "; what was trained can only be trained anew: adamant train " +
                           paths.job().string() + " --run-dir NEW_FOLDER";
  const absl::StatusOr<RunStatus> run = ReadRunStatus(paths.root);
  std::error_code error;
  if (run.ok() && run->report.phase == controller::Phase::kSucceeded) {
    return std::filesystem::exists(paths.safetensors(), error)
               ? "; the run has succeeded, and makes no other; its model is " +
                     paths.safetensors().string()
               : anew;
  }
  const bool lost = run.ok() && run->report.phase == controller::Phase::kFailed &&
                    run->report.message.find("begin the job anew") != std::string::npos;
  return lost || !HasDisksToGoOn(job, paths)
             ? anew
             : "; the run makes another if it goes on: adamant train --resume " +
                   paths.root.string();
}

absl::StatusOr<ModelFile> ReadStores(const v1::TrainingJob& job,
                                     const RunPaths& paths,
                                     std::uint64_t checkpoint) {
  const absl::StatusOr<RunLock> lock = RunLock::Acquire(paths, RunLock::Use::kRead);
  if (absl::IsPermissionDenied(lock.status())) {  // a disk that may only be read, say
    return absl::PermissionDeniedError(std::string(lock.status().message()) + kCopyIt);
  }
  ADAMANT_RETURN_IF_ERROR(lock.status());
  ADAMANT_RETURN_IF_ERROR(CheckDataFolder(paths));
  ADAMANT_ASSIGN_OR_RETURN(const std::vector<CheckpointManifest> manifests,
                           ManifestsOf(paths, checkpoint));
  ADAMANT_ASSIGN_OR_RETURN(const TrainedModel model, TrainedModelOf(job));
  Stores stores(paths);
  absl::Status newest;
  for (const CheckpointManifest& manifest : manifests) {
    absl::StatusOr<std::vector<float>> weights = Reader(manifest, model, stores).Read();
    if (weights.ok()) {
      return FileOf(job, manifest, *std::move(weights));
    }
    const bool lost = absl::IsDataLoss(weights.status());
    std::string why = "checkpoint " + std::to_string(manifest.checkpoint.snapshot);
    why += lost ? " is not valid: " : " cannot be read here: ";
    why += std::string(weights.status().message());
    if (!lost) {  // what is in the way of the others, too
      return absl::Status(weights.status().code(), why + kCopyIt);
    }
    newest.Update(absl::DataLossError(why));
  }
  if (newest.ok()) {
    return newest;
  }
  return absl::DataLossError(std::string(newest.message()) + HowToGetAnother(job, paths));
}

ModelSource SourceOf(const CheckpointManifest& manifest, const controller::JobReport& report) {
  ModelSource source;
  source.job_uid = manifest.job_uid;
  source.snapshot = manifest.checkpoint.snapshot;
  for (const auto& member : report.members) {
    if (member.id.role == controller::Role::kParameterServer) {
      source.servers.resize(std::max<std::size_t>(source.servers.size(), member.id.slot + 1));
      source.servers[member.id.slot] = member.address;
    }
  }
  for (const controller::CheckpointBucket& bucket : manifest.checkpoint.buckets) {
    source.holders.push_back(bucket.slot);
    source.checksums.push_back(bucket.checksum);
  }
  return source;
}

// Why the servers of a running job did not give a checkpoint, and what to do.
absl::Status NotHad(std::uint64_t checkpoint, const absl::Status& why, controller::Phase phase) {
  const std::string what = "checkpoint " + std::to_string(checkpoint) + " cannot be had ";
  const std::string because = ": " + std::string(why.message());
  const bool starts = phase == controller::Phase::kPending || phase == controller::Phase::kStarting;
  if (absl::IsUnavailable(why) && starts) {
    return absl::UnavailableError(what + "yet, as the job is starting" + because +
                                  "; wait until it trains, then export again");
  }
  return absl::UnavailableError(
      what + (absl::IsUnavailable(why) ? "now" : "from the running job") + because +
      (absl::IsUnavailable(why) ? "; export again in a moment, when that server is back,"
                                : "; wait for the next checkpoint,") +
      " or stop the job: then the same export reads the disks");
}

absl::StatusOr<ModelFile> AskServers(const v1::TrainingJob& job,
                                     const RunPaths& paths,
                                     std::uint64_t checkpoint) {
  ADAMANT_ASSIGN_OR_RETURN(const TrainedModel model, TrainedModelOf(job));
  absl::Status failed;
  for (int i = 0; i < kTries; ++i) {
    ADAMANT_ASSIGN_OR_RETURN(const std::vector<CheckpointManifest> manifests,
                             ManifestsOf(paths, checkpoint));
    ADAMANT_ASSIGN_OR_RETURN(const RunStatus status, ReadRunStatus(paths.root));
    if (!status.live) {
      return ReadStores(job, paths, checkpoint);
    }
    const CheckpointManifest& manifest = manifests.front();
    auto weights = FetchModel(SourceOf(manifest, status.report), model.layout);
    if (weights.ok()) {
      return FileOf(job, manifest, *std::move(weights));
    }
    failed = NotHad(manifest.checkpoint.snapshot, weights.status(), status.report.phase);
  }
  return failed;
}

}  // namespace

absl::StatusOr<ModelFile> ReadCheckpointModel(const v1::TrainingJob& job,
                                              const RunPaths& paths,
                                              std::uint64_t checkpoint) {
  ADAMANT_ASSIGN_OR_RETURN(const bool controlled, RunLock::IsControlled(paths));
  return controlled ? AskServers(job, paths, checkpoint) : ReadStores(job, paths, checkpoint);
}

}  // namespace adamant::local
