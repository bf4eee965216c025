#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/system/files.h"
#include "services/common/export/onnx_model.h"
#include "services/common/model/model.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

enum class ModelFormat { kSafetensors, kOnnx };

/// Returns how the job's bytes become inputs, by channel of the net.
exports::Normalisation NormalisationOf(const v1::TrainingJob& job, const model::Graph& graph);

/// The numbers of a normalisation by channel, as a model file has them: {"[33.3]", "[78.5]"}.
struct NormalisationText {
  std::string mean;
  std::string deviation;
};
NormalisationText TextOf(const exports::Normalisation& normalisation);

/// Returns the number of NaN or infinite weights, as after divergence: such a model is of no use.
std::uint64_t CountNotFinite(std::span<const float> weights);

/// Destination of a model. `pipes`: whether that may be one.
struct ModelTarget {
  std::filesystem::path path;
  ModelFormat format = ModelFormat::kSafetensors;
  Pipes pipes = Pipes::kRead;
};

/// Writes a model. `weights`: every parameter of the graph end to end. `metadata`: what is known of
/// the training; the file says beside it what the net takes: input, normalisation, mean and
/// deviation (by channel, in units of the byte), the net's layers, the names of classes where
/// they are known, and how many weights are not finite where any is. What `metadata` has of that,
/// as those of a model that was read, is kept and counts before the job. Errors: those of the
/// format and of the file system; InvalidArgument as in ReadModel.
absl::Status WriteModel(const ModelTarget& target,
                        const v1::TrainingJob& job,
                        const model::Graph& graph,
                        std::span<const float> weights,
                        const exports::Metadata& metadata);

/// A model file of a net, read and checked against it.
struct ModelFile {
  exports::Metadata metadata;
  std::vector<float> weights;  ///< every parameter of the graph end to end
  std::optional<exports::Normalisation> normalisation{};  ///< of the metadata, if they have it
};

/// Reads a safetensors file. Errors: those of ReadSafetensors; InvalidArgument when its tensors or
/// its layers are not those of the graph, naming the first that differs, or when its mean and
/// deviation are not a number a channel.
absl::StatusOr<ModelFile> ReadModel(const std::filesystem::path& path,
                                    const model::Graph& graph,
                                    Pipes pipes = Pipes::kRefused);

}  // namespace adamant::local
