#include "operator/local/model/model_check.h"

#include <filesystem>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/local/model/model_file.h"
#include "operator/local/run_folder/checkpoint_file.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/export/onnx_model.h"
#include "services/common/job/job.h"
#include "services/common/model/model.h"

namespace adamant::local {
namespace {

std::string WhatIsWrong(const absl::Status& status, const std::filesystem::path& path) {
  return absl::IsNotFound(status)
             ? "the run has succeeded, and " + path.string() + " is not there any more"
             : std::string(status.message());
}

std::string Export(const RunPaths& paths, const std::string& what) {
  return "adamant export " + paths.root.string() + " " + what;
}

// From where a model can be written anew once model.safetensors is of no use.
std::string FromCheckpoint(const RunPaths& paths,
                           const std::string& format,
                           const std::filesystem::path& out) {
  const absl::StatusOr<std::vector<CheckpointManifest>> manifests = ReadCheckpointManifests(paths);
  if (!manifests.ok()) {
    return "nor can it be written from a checkpoint: " + std::string(manifests.status().message());
  }
  const std::string newest = std::to_string(manifests->front().checkpoint.snapshot);
  return "the model of the newest checkpoint is written by: " +
         Export(paths, "--checkpoint " + newest + " --format " + format + " --out " + out.string());
}

}  // namespace

std::vector<std::string> CheckModel(const v1::TrainingJob& job, const RunPaths& paths) {
  const absl::StatusOr<model::Graph> graph = model::BuildGraph(job::NetOf(job));
  if (!graph.ok()) {
    return {};
  }
  std::vector<std::string> wrong;
  const absl::StatusOr<ModelFile> weights = ReadModel(paths.safetensors(), *graph);
  if (!weights.ok()) {
    wrong.push_back(WhatIsWrong(weights.status(), paths.safetensors()) + "; " +
                    FromCheckpoint(paths, "safetensors", paths.safetensors()));
  }
  const absl::Status onnx = exports::CheckOnnx(paths.onnx());
  const bool is_too_large =
      absl::IsNotFound(onnx) && weights.ok() && exports::IsBeyondOnnx(weights->weights);
  if (!onnx.ok() && !is_too_large) {
    wrong.push_back(WhatIsWrong(onnx, paths.onnx()) + "; " +
                    (weights.ok()
                         ? "it is written anew by: " +
                               Export(paths, "--format onnx --out " + paths.onnx().string())
                         : FromCheckpoint(paths, "onnx", paths.onnx())));
  }
  return wrong;
}

}  // namespace adamant::local
