#pragma once

#include <string>
#include <vector>

#include "operator/local/run_folder/run_paths.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// Returns what is wrong with the model files of a run that has succeeded, and how each is written
/// anew, in a sentence for each that is missing, damaged or of another net; a net beyond the 2 GB
/// of ONNX has no model.onnx. Reads both files as a whole.
std::vector<std::string> CheckModel(const v1::TrainingJob& job, const RunPaths& paths);

}  // namespace adamant::local
