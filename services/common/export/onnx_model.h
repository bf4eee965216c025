#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/export/safetensors.h"
#include "services/common/model/model.h"
#include "services/common/protocol/work.h"

namespace adamant::exports {

using protocol::Normalisation;

/// The net with its weights as an ONNX model (opset 13).
///   input  "input":  float32 [batch, channels, height, width], raw bytes 0..255 as floats; the
///                    model's first two nodes normalise them, and its descriptions say so
///   output "logits": float32 [batch, classes], before the softmax
/// `weights` holds every tensor of graph.parameters end to end, as ShardLayout::OffsetOf says; the
/// initialisers keep the parameters' names. Dropout does nothing and is left out. `metadata`
/// becomes the model's metadata properties, after one that begins the file: "xxh3_64", the XXH3 of
/// all bytes that follow that property. Errors: InvalidArgument when the sizes do
/// not fit the graph; OutOfRange beyond 2 GB, the limit of the format: use safetensors then.
absl::StatusOr<std::string> EncodeOnnx(const model::Graph& graph,
                                       std::span<const float> weights,
                                       const Normalisation& normalisation,
                                       const Metadata& metadata);

/// Returns whether a net's weights are beyond what an ONNX file can hold.
bool IsBeyondOnnx(std::span<const float> weights);

/// Writes the file; errors as EncodeOnnx and WriteFile.
absl::Status WriteOnnx(const std::filesystem::path& path,
                       const model::Graph& graph,
                       std::span<const float> weights,
                       const Normalisation& normalisation,
                       const Metadata& metadata,
                       Pipes pipes = Pipes::kRead);

/// Reads the initialisers of an ONNX file that are float32, by whomever it was written: of one of
/// WriteOnnx the parameters by their names, and the normalisation. Nodes are not looked at.
/// Errors: as ReadFile; DataLoss when it is no ONNX file or an initialiser's size is not that of
/// its shape, naming it; Unimplemented for values in other files.
absl::StatusOr<std::vector<Tensor>> ReadOnnxTensors(const std::filesystem::path& path);

/// Checks that a file that WriteOnnx has written is whole; one of an earlier version, without
/// "xxh3_64", need only be an ONNX file. Errors: as ReadFile; DataLoss, naming the file.
absl::Status CheckOnnx(const std::filesystem::path& path);

}  // namespace adamant::exports
