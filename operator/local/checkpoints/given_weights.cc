#include "operator/local/checkpoints/given_weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "operator/local/checkpoints/saved_buckets.h"
#include "operator/local/model/trained_model.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/export/onnx_model.h"
#include "services/common/export/safetensors.h"
#include "services/common/job/job.h"

namespace adamant::local {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;

std::size_t Elements(const Parameter& parameter) {
  return static_cast<std::size_t>(ElementCount(parameter.shape).value_or(0));
}

// Each parameter of the checkpoint's own net.
absl::StatusOr<std::vector<exports::Tensor>> TensorsOf(const std::filesystem::path& folder) {
  ADAMANT_ASSIGN_OR_RETURN(const SavedCheckpoint about, ReadSavedCheckpoint(folder));
  ADAMANT_ASSIGN_OR_RETURN(const auto job, ReadSavedJob(folder, about));
  ADAMANT_ASSIGN_OR_RETURN(const TrainedModel model, TrainedModelOf(*job));
  std::vector<exports::Tensor> tensors;
  for (const Parameter& parameter : model.graph.parameters) {
    tensors.push_back({.name = parameter.name,
                       .shape = parameter.shape,
                       .values = std::vector<float>(Elements(parameter))});
  }
  for (BucketId bucket = 0; bucket < model.layout.buckets(); ++bucket) {
    ADAMANT_ASSIGN_OR_RETURN(const BucketContent content,
                             ReadSavedBucket(folder, about, model, bucket));
    const std::vector<Shard> shards = ShardsOfBucket(model.layout, bucket);
    for (std::size_t i = 0; i < shards.size(); ++i) {
      std::ranges::copy(
          content.shards[i].values,
          tensors[shards[i].tensor].values.begin() + static_cast<std::ptrdiff_t>(shards[i].begin));
    }
  }
  return tensors;
}

absl::StatusOr<std::vector<exports::Tensor>> ReadTensors(const std::filesystem::path& path) {
  if (std::error_code error; std::filesystem::is_directory(path, error)) {
    return TensorsOf(path);
  }
  if (path.extension() == ".onnx") {
    ADAMANT_RETURN_IF_ERROR(exports::CheckOnnx(path));
    return exports::ReadOnnxTensors(path);
  }
  ADAMANT_ASSIGN_OR_RETURN(exports::TensorFile file, exports::ReadSafetensors(path, kMostBytes));
  return std::move(file.tensors);
}

}  // namespace

absl::StatusOr<std::unique_ptr<v1::TrainingJob>> ReadSavedJob(const std::filesystem::path& folder,
                                                              const SavedCheckpoint& about) {
  ADAMANT_ASSIGN_OR_RETURN(const std::string text, ReadSavedFile(folder, about, kSavedJob));
  job::ParseResult parsed =
      job::ParseJob(text, (folder / kSavedJob).string(), job::DataReading::kNone);
  if (parsed.job == nullptr) {
    return absl::DataLossError(job::Format(parsed.problems.front()));
  }
  return std::move(parsed.job);
}

absl::StatusOr<std::vector<float>> ReadGivenWeights(const std::filesystem::path& path,
                                                    const model::Graph& graph) {
  ADAMANT_ASSIGN_OR_RETURN(const std::vector<exports::Tensor> tensors, ReadTensors(path));
  std::map<std::string, const exports::Tensor*> by_name;
  for (const exports::Tensor& tensor : tensors) {
    if (!by_name.emplace(tensor.name, &tensor).second) {
      return absl::InvalidArgumentError(path.string() + ": " + tensor.name + " is there twice");
    }
  }
  std::vector<float> weights;
  std::string misfits;
  for (const Parameter& parameter : graph.parameters) {
    const auto found = by_name.find(parameter.name);
    if (found != by_name.end() && found->second->shape == parameter.shape) {
      if (!std::ranges::all_of(found->second->values, [](float v) { return std::isfinite(v); })) {
        return absl::InvalidArgumentError(path.string() + ": " + parameter.name +
                                          " has values that are not finite");
      }
      weights.insert(weights.end(), found->second->values.begin(), found->second->values.end());
      continue;
    }
    misfits += (misfits.empty() ? "" : "; ") + parameter.name + " is " +
               (found == by_name.end() ? "not there" : ToString(found->second->shape)) +
               ", the net needs " + ToString(parameter.shape);
  }
  return misfits.empty()
             ? absl::StatusOr<std::vector<float>>(std::move(weights))
             : absl::InvalidArgumentError(path.string() + " does not fit the net: " + misfits);
}

}  // namespace adamant::local
