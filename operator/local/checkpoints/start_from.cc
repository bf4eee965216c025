#include "operator/local/checkpoints/start_from.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "operator/control/job_settings.h"
#include "operator/core/job/start_state.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"
#include "operator/local/checkpoints/checkpoint_folder.h"
#include "operator/local/checkpoints/given_weights.h"
#include "operator/local/checkpoints/saved_buckets.h"
#include "operator/local/checkpoints/start_stores.h"
#include "operator/local/model/trained_model.h"
#include "operator/local/state/resumption.h"
#include "operator/local/state/state_copies.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/base/system/random_id.h"

namespace adamant::local {
namespace {

using Entries = std::vector<controller::Persist::Entry>;

// A saved checkpoint that fits the job, but for its buckets, which are not read yet.
struct SavedStart {
  std::filesystem::path folder;
  SavedCheckpoint about;
  Records entries;  // of the controller
  controller::JobState state;
};

absl::Status Naming(const std::string& field, const absl::Status& status) {
  return status.ok() ? status
                     : absl::Status(status.code(), field + ": " + std::string(status.message()));
}

absl::Status Misfit(const SavedStart& start, const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) {
    all += (all.empty() ? "" : "; ") + line;
  }
  return lines.empty()
             ? absl::OkStatus()
             : absl::InvalidArgumentError(start.folder.string() + " does not fit the job: " + all);
}

// Parameters that are not in the checkpoint as the net has them, and the other way round.
std::vector<std::string> OtherTensors(const SavedCheckpoint& about, const TrainedModel& model) {
  std::vector<std::string> lines;
  std::map<std::string, Shape> saved;
  for (const SavedTensor& tensor : about.tensors) {
    saved[tensor.name] = tensor.shape;
  }
  for (const Parameter& parameter : model.graph.parameters) {
    const auto found = saved.find(parameter.name);
    if (found == saved.end() || found->second != parameter.shape) {
      lines.push_back(parameter.name + " is " +
                      (found == saved.end() ? "not there" : ToString(found->second)) +
                      ", the net needs " + ToString(parameter.shape));
    }
    if (found != saved.end()) {
      saved.erase(found);
    }
  }
  for (const auto& [name, shape] : saved) {
    lines.push_back(name + " is " + ToString(shape) + ", the net has none of that name");
  }
  return lines;
}

absl::StatusOr<SavedStart> ReadSavedStart(const v1::TrainingJob& job, const TrainedModel& model) {
  SavedStart start;
  start.folder = job.spec().start_from().checkpoint().path();
  ADAMANT_ASSIGN_OR_RETURN(start.about, ReadSavedCheckpoint(start.folder));
  ADAMANT_RETURN_IF_ERROR(Misfit(start, OtherTensors(start.about, model)));
  ADAMANT_ASSIGN_OR_RETURN(start.entries, ReadSavedRecords(start.folder, start.about, kSavedState));
  ADAMANT_ASSIGN_OR_RETURN(start.state,
                           controller::DecodeState(start.entries[controller::kStateKey]));
  ADAMANT_ASSIGN_OR_RETURN(const auto began, ReadSavedJob(start.folder, start.about));
  ADAMANT_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                           WhatDoesNotFit(*began, job, start.state.data_files));
  ADAMANT_RETURN_IF_ERROR(Misfit(start, lines));
  if (start.state.checkpoint.snapshot != start.about.snapshot ||
      start.state.checkpoint.buckets.size() != model.layout.buckets()) {
    return absl::DataLossError(start.folder.string() +
                               ": its parts are not of the same checkpoint");
  }
  return start;
}

// The job goes on from the cut.
absl::StatusOr<Entries> GoOnFrom(const v1::TrainingJob& job, const std::filesystem::path& folder) {
  ADAMANT_ASSIGN_OR_RETURN(const TrainedModel model, TrainedModelOf(job));
  ADAMANT_ASSIGN_OR_RETURN(SavedStart start, ReadSavedStart(job, model));
  const std::uint64_t uid = RandomId();
  StartStores stores(folder, uid, model);
  for (BucketId bucket = 0; bucket < model.layout.buckets(); ++bucket) {
    ADAMANT_ASSIGN_OR_RETURN(const BucketContent content,
                             ReadSavedBucket(start.folder, start.about, model, bucket));
    controller::CheckpointBucket& known = start.state.checkpoint.buckets[bucket];
    ADAMANT_ASSIGN_OR_RETURN(known, stores.Put(start.about.snapshot, known.slot, content));
  }
  ADAMANT_ASSIGN_OR_RETURN(const controller::JobState state,
                           controller::StateFrom(std::move(start.state), uid));
  start.entries[controller::kStateKey] = controller::Encode(state);
  Entries entries;
  for (auto& [key, value] : start.entries) {
    entries.push_back({.key = key, .value = std::move(value)});
  }
  return entries;
}

// A bucket that nobody has trained.
BucketContent UntrainedBucket(const TrainedModel& model,
                              BucketId bucket,
                              const std::vector<float>& weights) {
  BucketContent content{
      .about = {.bucket = bucket, .configuration_version = 1, .generation = 1, .updates = 0},
      .shards = {},
      .records = {}};
  for (const Shard& shard : ShardsOfBucket(model.layout, bucket)) {
    const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(
                                             model.layout.OffsetOf(shard.tensor) + shard.begin);
    checkpoint::ShardContent& added = content.shards.emplace_back();
    added.generation = 1;
    added.values.assign(begin, begin + static_cast<std::ptrdiff_t>(shard.size()));
    added.state.assign(model.IdentityOf(0, shard).state, 0);
  }
  return content;
}

// A new training of weights that are given.
absl::StatusOr<Entries> BeginWith(const v1::TrainingJob& job, const std::filesystem::path& folder) {
  ADAMANT_ASSIGN_OR_RETURN(const TrainedModel model, TrainedModelOf(job));
  ADAMANT_ASSIGN_OR_RETURN(const std::vector<float> weights,
                           ReadGivenWeights(job.spec().start_from().weights().path(), model.graph));
  const controller::JobSettings settings = control::SettingsOf(job);
  const std::uint64_t uid = RandomId();
  StartStores stores(folder, uid, model);
  std::vector<controller::CheckpointBucket> buckets;
  for (BucketId bucket = 0; bucket < model.layout.buckets(); ++bucket) {
    ADAMANT_ASSIGN_OR_RETURN(buckets.emplace_back(),
                             stores.Put(controller::kGivenWeights,
                                        bucket.value() % settings.parameter_servers,
                                        UntrainedBucket(model, bucket, weights)));
  }
  return Entries{{.key = controller::kStateKey,
                  .value = controller::Encode(
                      controller::StateWithWeights(settings, uid, std::move(buckets)))}};
}

std::string FieldOf(const v1::TrainingJob& job) {
  return job.spec().start_from().has_weights() ? "spec.startFrom.weights"
                                               : "spec.startFrom.checkpoint";
}

absl::Status Check(const v1::TrainingJob& job) {
  ADAMANT_ASSIGN_OR_RETURN(const TrainedModel model, TrainedModelOf(job));
  if (job.spec().start_from().has_weights()) {
    return ReadGivenWeights(job.spec().start_from().weights().path(), model.graph).status();
  }
  ADAMANT_ASSIGN_OR_RETURN(const SavedStart start, ReadSavedStart(job, model));
  for (BucketId bucket = 0; bucket < model.layout.buckets(); ++bucket) {
    ADAMANT_RETURN_IF_ERROR(ReadSavedBucket(start.folder, start.about, model, bucket).status());
  }
  return absl::OkStatus();
}

// The stores, once the state says what is in them.
absl::Status MoveStores(const RunPaths& paths) {
  std::error_code error;
  if (!std::filesystem::exists(paths.start(), error)) {
    return absl::OkStatus();
  }
  ADAMANT_RETURN_IF_ERROR(MakeFolder(paths.data()));
  std::vector<std::filesystem::path> stores;
  for (const auto& entry : std::filesystem::directory_iterator(paths.start(), error)) {
    stores.push_back(entry.path());
  }
  for (const std::filesystem::path& store : stores) {
    const std::filesystem::path place = paths.data() / store.filename();
    std::filesystem::rename(store, place, error);
    if (error) {
      return SystemError(error.value(), "cannot rename to", place);
    }
  }
  ADAMANT_RETURN_IF_ERROR(SyncFolder(paths.data()));
  std::filesystem::remove_all(paths.start(), error);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStart(const v1::TrainingJob& job) {
  return job.spec().has_start_from() ? Naming(FieldOf(job), Check(job)) : absl::OkStatus();
}

absl::Status EnterStart(const v1::TrainingJob& job,
                        const RunPaths& paths,
                        controller::StateStore& state) {
  ADAMANT_ASSIGN_OR_RETURN(const controller::StateStore::Snapshot stored, state.Load());
  if (stored.version == 0 && !job.spec().has_start_from()) {
    return absl::OkStatus();
  }
  if (stored.version == 0) {
    ADAMANT_RETURN_IF_ERROR(CheckNotBegun(paths));
    std::error_code error;
    std::filesystem::remove_all(paths.start(), error);  // of one that was killed
    const absl::StatusOr<Entries> entries = job.spec().start_from().has_weights()
                                                ? BeginWith(job, paths.start())
                                                : GoOnFrom(job, paths.start());
    ADAMANT_RETURN_IF_ERROR(Naming(FieldOf(job), entries.status()));
    ADAMANT_RETURN_IF_ERROR(SyncFolder(paths.start()));
    ADAMANT_RETURN_IF_ERROR(StoreStart(job, paths));  // whoever goes on with the state compares
    ADAMANT_RETURN_IF_ERROR(SyncFolder(paths.root));
    ADAMANT_FAILPOINT("start/store");
    ADAMANT_RETURN_IF_ERROR(state.CompareAndSwap(0, *entries));
  }
  ADAMANT_FAILPOINT("start/move");
  return MoveStores(paths);
}

}  // namespace adamant::local
