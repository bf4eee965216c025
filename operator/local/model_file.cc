#include "operator/local/model_file.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/export/safetensors.h"
#include "services/common/tensor/shape.h"

namespace adamant::local {
namespace {

// Room for names and metadata beside the values.
constexpr std::uint64_t kHeaderBytes = std::uint64_t{16} << 20;

std::uint64_t Elements(const Parameter& parameter) {
  return static_cast<std::uint64_t>(ElementCount(parameter.shape).value_or(0));
}

}  // namespace

exports::Normalisation NormalisationOf(const v1::TrainingJob& job, const model::Graph& graph) {
  const v1::Normalise& normalise = job.spec().data().transformations().normalise();
  const auto channels = static_cast<std::size_t>(graph.input.front());
  return {
      .mean = std::vector<float>(channels, static_cast<float>(255 * normalise.mean())),
      .deviation = std::vector<float>(channels, static_cast<float>(255 * normalise.deviation()))};
}

absl::Status WriteModel(const std::filesystem::path& path,
                        ModelFormat format,
                        const v1::TrainingJob& job,
                        const model::Graph& graph,
                        std::span<const float> weights,
                        const exports::Metadata& metadata) {
  if (format == ModelFormat::kOnnx) {
    return exports::WriteOnnx(path, graph, weights, NormalisationOf(job, graph), metadata);
  }
  std::vector<exports::TensorView> tensors;
  std::size_t offset = 0;
  for (const Parameter& parameter : graph.parameters) {
    const std::uint64_t elements = Elements(parameter);
    tensors.push_back({.name = parameter.name,
                       .shape = parameter.shape,
                       .values = weights.subspan(offset, elements)});
    offset += elements;
  }
  return exports::WriteSafetensors(path, tensors, metadata);
}

absl::StatusOr<ModelFile> ReadModel(const std::filesystem::path& path, const model::Graph& graph) {
  std::uint64_t total = 0;
  for (const Parameter& parameter : graph.parameters) {
    total += Elements(parameter);
  }
  ADAMANT_ASSIGN_OR_RETURN(exports::TensorFile file,
                           exports::ReadSafetensors(path, total * sizeof(float) + kHeaderBytes));
  std::map<std::string, const exports::Tensor*> tensors;
  for (const exports::Tensor& tensor : file.tensors) {
    tensors[tensor.name] = &tensor;
  }
  ModelFile model{.metadata = std::move(file.metadata), .weights = {}};
  model.weights.reserve(total);
  for (const Parameter& parameter : graph.parameters) {
    const auto found = tensors.find(parameter.name);
    if (found == tensors.end()) {
      return absl::InvalidArgumentError(path.string() + " has no tensor " + parameter.name +
                                        ": it is a model of another net");
    }
    const exports::Tensor& tensor = *found->second;
    if (tensor.shape != parameter.shape) {
      return absl::InvalidArgumentError(path.string() + ": tensor " + parameter.name + " is " +
                                        ToString(tensor.shape) + ", the net needs " +
                                        ToString(parameter.shape));
    }
    model.weights.insert(model.weights.end(), tensor.values.begin(), tensor.values.end());
  }
  return model;
}

}  // namespace adamant::local
