#include "operator/local/run_folder/checkpoint_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "operator/local/run_folder/checked_json.h"
#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/storage/rocksdb/file_kinds.h"

namespace adamant::local {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kFormatVersion = 1;
constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 20;

CheckpointManifest FromJson(const Json& json) {
  CheckpointManifest manifest;
  manifest.job_uid = ReadHex(json.at("job"));
  controller::Checkpoint& checkpoint = manifest.checkpoint;
  checkpoint.snapshot = json.at("snapshot");
  checkpoint.epoch = json.at("epoch");
  checkpoint.held = std::chrono::milliseconds(json.at("held_ms").get<std::int64_t>());
  for (const Json& bucket : json.at("buckets")) {
    checkpoint.buckets.push_back({.slot = bucket.at("server"),
                                  .generation = bucket.at("generation"),
                                  .updates = bucket.at("updates"),
                                  .checksum = ReadHex(bucket.at("checksum"))});
  }
  for (const Json& cut : json.at("cuts")) {
    checkpoint.cuts.push_back({.worker = cut.at("worker"),
                               .incarnation = cut.at("incarnation"),
                               .sequence = cut.at("sequence")});
  }
  return manifest;
}

// Of what a file holds, not of reading it.
bool IsDamage(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsFailedPrecondition(status);
}

// Whoever runs a job writes the newest one anew at its start.
absl::StatusOr<CheckpointManifest> ReadFrom(const RunPaths& paths,
                                            const std::filesystem::path& path) {
  ADAMANT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
  absl::StatusOr<CheckpointManifest> manifest = DecodeCheckpointManifest(text);
  if (!manifest.ok()) {
    const std::string anew = absl::IsDataLoss(manifest.status())
                                 ? "; adamant train --resume " + paths.root.string() +
                                       " makes that of the newest checkpoint anew, of a run that "
                                       "has not succeeded"
                                 : "";
    return absl::Status(manifest.status().code(),
                        path.string() + ": " + std::string(manifest.status().message()) + anew);
  }
  return manifest;
}

// Copies of checkpoints have folders of their own beside the manifests.
bool IsManifest(const std::filesystem::directory_entry& entry) {
  std::error_code error;
  return entry.path().extension() == ".json" || !entry.is_directory(error);
}

// Whoever runs a job makes the folder before there is a checkpoint.
absl::Status CheckCheckpoints(const RunPaths& paths) {
  if (const absl::Status status = storage::CheckIsFolder(paths.checkpoints()); !status.ok()) {
    return absl::DataLossError(std::string(status.message()) + "; move it away");
  }
  if (std::error_code error; std::filesystem::exists(paths.started(), error) &&
                             !std::filesystem::exists(paths.checkpoints(), error)) {
    return absl::NotFoundError(paths.checkpoints().string() +
                               ": is not there, and names the checkpoints that there are; adamant "
                               "train --resume " +
                               paths.root.string() + " makes it anew of a run that has not ended");
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeCheckpointManifest(const CheckpointManifest& manifest) {
  const controller::Checkpoint& checkpoint = manifest.checkpoint;
  Json json;
  json["format_version"] = kFormatVersion;
  json["job"] = HexText(manifest.job_uid);
  json["snapshot"] = checkpoint.snapshot;
  json["epoch"] = checkpoint.epoch;
  json["held_ms"] = checkpoint.held.count();
  json["buckets"] = Json::array();
  for (const controller::CheckpointBucket& bucket : checkpoint.buckets) {
    json["buckets"].push_back({{"server", bucket.slot},
                               {"generation", bucket.generation},
                               {"updates", bucket.updates},
                               {"checksum", HexText(bucket.checksum)}});
  }
  json["cuts"] = Json::array();
  for (const controller::PushCut& cut : checkpoint.cuts) {
    json["cuts"].push_back(
        {{"worker", cut.worker}, {"incarnation", cut.incarnation}, {"sequence", cut.sequence}});
  }
  return SealJson(std::move(json));
}

absl::StatusOr<CheckpointManifest> DecodeCheckpointManifest(std::string_view text) {
  ADAMANT_ASSIGN_OR_RETURN(const Json json, OpenJson(text, kFormatVersion));
  try {
    return FromJson(json);
  } catch (const nlohmann::json::exception& error) {
    return DamagedManifest(error.what());
  }
}

absl::StatusOr<CheckpointManifest> ReadCheckpointManifest(const RunPaths& paths,
                                                          std::uint64_t snapshot) {
  return ReadFrom(paths, paths.checkpoint(snapshot));
}

absl::Status WriteCheckpointManifest(const RunPaths& paths,
                                     const CheckpointManifest& manifest,
                                     std::uint64_t keep) {
  const std::uint64_t snapshot = manifest.checkpoint.snapshot;
  std::error_code error;
  std::filesystem::create_directory(paths.checkpoints(), error);  // not a run that is gone
  if (error) {
    return SystemError(error.value(), "cannot create", paths.checkpoints());
  }
  if (snapshot != 0) {
    ADAMANT_RETURN_IF_ERROR(
        WriteFileAtomically(paths.checkpoint(snapshot), EncodeCheckpointManifest(manifest)));
  }
  ADAMANT_FAILPOINT("checkpoint/erase_older");
  for (const auto& entry : std::filesystem::directory_iterator(paths.checkpoints(), error)) {
    if (IsManifest(entry) && entry.path() != paths.checkpoint(snapshot) &&
        entry.path() != paths.checkpoint(keep)) {
      std::filesystem::remove(entry.path(), error);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CheckpointManifest>> ReadCheckpointManifests(const RunPaths& paths) {
  ADAMANT_RETURN_IF_ERROR(CheckCheckpoints(paths));
  std::vector<CheckpointManifest> manifests;
  absl::Status damage;  // the first
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(paths.checkpoints(), error)) {
    if (!IsManifest(entry)) {
      continue;
    }
    absl::StatusOr<CheckpointManifest> manifest = ReadFrom(paths, entry.path());
    if (manifest.ok()) {
      manifests.push_back(*std::move(manifest));
    } else if (IsDamage(manifest.status())) {
      damage.Update(manifest.status());
    } else if (!absl::IsNotFound(
                   manifest.status())) {  // the controller has just written a newer one
      return manifest.status();
    }
  }
  std::sort(manifests.begin(),
            manifests.end(),
            [](const CheckpointManifest& a, const CheckpointManifest& b) {
              return a.checkpoint.snapshot > b.checkpoint.snapshot;
            });
  if (manifests.empty()) {
    ADAMANT_RETURN_IF_ERROR(damage);
    return absl::NotFoundError(paths.root.string() +
                               " holds no model yet: no checkpoint has been taken");
  }
  return manifests;
}

}  // namespace adamant::local
