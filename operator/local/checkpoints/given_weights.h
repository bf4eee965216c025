#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/local/checkpoints/checkpoint_folder.h"
#include "services/common/model/model.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// The job of a saved checkpoint. Errors: those of ReadSavedFile; DataLoss when it cannot be read.
absl::StatusOr<std::unique_ptr<v1::TrainingJob>> ReadSavedJob(const std::filesystem::path& folder,
                                                              const SavedCheckpoint& about);

/// Reads the parameters of a net, end to end, by their names: from the folder of a saved
/// checkpoint, an ONNX file (".onnx") or else a safetensors file. What else is in there is passed
/// over.
/// Errors: InvalidArgument when a parameter is missing or has another shape, naming all of them
/// with both shapes; those of the formats and of the file system, naming the file.
absl::StatusOr<std::vector<float>> ReadGivenWeights(const std::filesystem::path& path,
                                                    const model::Graph& graph);

}  // namespace adamant::local
