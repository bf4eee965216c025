#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/core/state/state.h"
#include "operator/local/run_folder/run_paths.h"

namespace adamant::local {

/// Content of a checkpoint's manifest: checkpoints/<snapshot>.json.
struct CheckpointManifest {
  std::uint64_t job_uid = 0;
  controller::Checkpoint checkpoint;
};

/// The manifest as JSON, with a checksum over all the rest.
std::string EncodeCheckpointManifest(const CheckpointManifest& manifest);

/// Errors: FailedPrecondition for another format version, naming both; DataLoss when it is damaged.
absl::StatusOr<CheckpointManifest> DecodeCheckpointManifest(std::string_view text);

/// Writes a manifest atomically, unless it is of snapshot 0, which is none, and removes all others
/// but that of snapshot `keep`.
/// Errors: those of the file system.
absl::Status WriteCheckpointManifest(const RunPaths& paths,
                                     const CheckpointManifest& manifest,
                                     std::uint64_t keep);

/// The manifest of one checkpoint. Errors: NotFound; those of DecodeCheckpointManifest, naming the
/// file; those of the file system.
absl::StatusOr<CheckpointManifest> ReadCheckpointManifest(const RunPaths& paths,
                                                          std::uint64_t snapshot);

/// The manifests of a run, newest first, without damaged ones. Errors: NotFound when there is none;
/// those of DecodeCheckpointManifest, naming the file, when none can be read; those of the file
/// system.
absl::StatusOr<std::vector<CheckpointManifest>> ReadCheckpointManifests(const RunPaths& paths);

}  // namespace adamant::local
