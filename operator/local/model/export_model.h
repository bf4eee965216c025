#pragma once

#include "absl/status/status.h"
#include "operator/local/model/fetch_model.h"
#include "operator/local/run_folder/run_paths.h"
#include "services/common/export/safetensors.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// Fetches a snapshot from the parameter servers and writes it as model.safetensors and, up to
/// the 2 GB of that format, as model.onnx, with `metadata` in both.
/// Threads: any. Errors: those of FetchModel; those of the file system, but never Unavailable;
/// DataLoss where one of the two is no file.
absl::Status ExportModel(const v1::TrainingJob& job,
                         const ModelSource& source,
                         const exports::Metadata& metadata,
                         const RunPaths& paths);

}  // namespace adamant::local
