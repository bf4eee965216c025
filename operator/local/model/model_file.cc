#include "operator/local/model/model_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>
#include <system_error>

#include "operator/local/model/net_text.h"
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

constexpr int kDigits = 10;

// "[33.3, 35.1]": a number a channel, shortest that reads back the same.
std::string ListText(const std::vector<float>& values) {
  std::string text;
  for (const float value : values) {
    char number[32];
    const std::to_chars_result end = std::to_chars(number, number + sizeof(number), value);
    text += (text.empty() ? "" : ", ") + std::string(number, end.ptr);
  }
  return "[" + text + "]";
}

// The inverse; nullopt unless it is a finite number for each of `channels`.
std::optional<std::vector<float>> ReadList(std::string_view text, std::size_t channels) {
  if (!text.starts_with('[') || !text.ends_with(']') || text.size() < 2) {
    return std::nullopt;
  }
  text = text.substr(1, text.size() - 2);
  std::vector<float> values;
  while (values.size() < channels) {
    float value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || !std::isfinite(value)) {
      return std::nullopt;
    }
    values.push_back(value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with(", ")) {
      text.remove_prefix(2);
    } else {
      break;
    }
  }
  return values.size() == channels && text.empty() ? std::optional(values) : std::nullopt;
}

// What the metadata of a model say that it was trained with; nullopt where they do not.
absl::StatusOr<std::optional<exports::Normalisation>> NormalisationIn(
    const exports::Metadata& metadata, const model::Graph& graph) {
  const auto mean = metadata.find("mean");
  const auto deviation = metadata.find("deviation");
  if (mean == metadata.end() && deviation == metadata.end()) {
    return std::nullopt;
  }
  const auto channels = static_cast<std::size_t>(graph.input.front());
  const auto numbers = [&](const auto& found) {
    return found == metadata.end() ? std::nullopt : ReadList(found->second, channels);
  };
  const std::optional<std::vector<float>> means = numbers(mean);
  const std::optional<std::vector<float>> deviations = numbers(deviation);
  if (!means || !deviations || std::ranges::min(*deviations) <= 0) {
    return absl::InvalidArgumentError(
        "its metadata mean and deviation are not a number, and one above 0, for each of the "
        "net's " +
        std::to_string(channels) + " channels");
  }
  return exports::Normalisation{.mean = *means, .deviation = *deviations};
}

// What a reader needs to know of the net's input and output beside what the run says of itself.
exports::Metadata Describe(const v1::TrainingJob& job,
                           const model::Graph& graph,
                           const exports::Normalisation& normalisation,
                           exports::Metadata metadata) {
  std::string shape = "[batch";
  for (const std::int64_t extent : graph.input) {
    shape += ", " + std::to_string(extent);
  }
  const NormalisationText numbers = TextOf(normalisation);
  metadata["input"] = "float32 " + shape + "] (NCHW): pixels from 0 to 255, not from 0 to 1";
  metadata["normalisation"] =
      "(pixel - mean) / deviation, by channel; an ONNX model does it itself";
  metadata["mean"] = numbers.mean;
  metadata["deviation"] = numbers.deviation;
  metadata["net"] = NetText(graph);
  if (job.spec().data().validation().has_digits() && graph.classes == kDigits) {
    metadata["classes"] = R"(["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"])";
  }
  return metadata;
}

}  // namespace

exports::Normalisation NormalisationOf(const v1::TrainingJob& job, const model::Graph& graph) {
  const v1::Normalise& normalise = job.spec().data().transformations().normalise();
  const auto channels = static_cast<std::size_t>(graph.input.front());
  return {
      .mean = std::vector<float>(channels, static_cast<float>(255 * normalise.mean())),
      .deviation = std::vector<float>(channels, static_cast<float>(255 * normalise.deviation()))};
}

std::uint64_t CountNotFinite(std::span<const float> weights) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(weights, [](float weight) { return !std::isfinite(weight); }));
}

NormalisationText TextOf(const exports::Normalisation& normalisation) {
  return {.mean = ListText(normalisation.mean), .deviation = ListText(normalisation.deviation)};
}

absl::Status WriteModel(const ModelTarget& target,
                        const v1::TrainingJob& job,
                        const model::Graph& graph,
                        std::span<const float> weights,
                        const exports::Metadata& metadata) {
  ADAMANT_ASSIGN_OR_RETURN(const auto stored, NormalisationIn(metadata, graph));
  const exports::Normalisation normalisation = stored.value_or(NormalisationOf(job, graph));
  exports::Metadata described = stored ? metadata : Describe(job, graph, normalisation, metadata);
  if (const std::uint64_t bad = CountNotFinite(weights); bad > 0) {
    described["not_finite"] = std::to_string(bad);
  }
  if (target.format == ModelFormat::kOnnx) {
    return exports::WriteOnnx(target.path, graph, weights, normalisation, described, target.pipes);
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
  return exports::WriteSafetensors(target.path, tensors, described, target.pipes);
}

absl::StatusOr<ModelFile> ReadModel(const std::filesystem::path& path,
                                    const model::Graph& graph,
                                    Pipes pipes) {
  if (path.extension() == ".onnx") {
    return absl::InvalidArgumentError(path.string() +
                                      " is for other tools; what is read here is a safetensors "
                                      "file: take the run's model.safetensors");
  }
  std::uint64_t total = 0;
  for (const Parameter& parameter : graph.parameters) {
    total += Elements(parameter);
  }
  ADAMANT_ASSIGN_OR_RETURN(
      exports::TensorFile file,
      exports::ReadSafetensors(path, total * sizeof(float) + kHeaderBytes, pipes));
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
  if (const auto net = model.metadata.find("net"); net != model.metadata.end()) {
    const std::string difference = FirstDifference(net->second, NetText(graph));
    if (!difference.empty()) {
      return absl::InvalidArgumentError(path.string() + " is a model of another net: it has " +
                                        difference);
    }
  }
  absl::StatusOr<std::optional<exports::Normalisation>> normalisation =
      NormalisationIn(model.metadata, graph);
  if (!normalisation.ok()) {
    return absl::InvalidArgumentError(path.string() + ": " +
                                      std::string(normalisation.status().message()));
  }
  model.normalisation = *std::move(normalisation);
  return model;
}

}  // namespace adamant::local
