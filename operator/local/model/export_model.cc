#include "operator/local/model/export_model.h"

#include <vector>

#include "operator/local/model/model_file.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/job/job.h"
#include "services/common/model/model.h"

namespace adamant::local {

namespace {

absl::Status WriteBoth(const v1::TrainingJob& job,
                       const model::Graph& graph,
                       const std::vector<float>& weights,
                       const exports::Metadata& metadata,
                       const RunPaths& paths) {
  const absl::Status onnx =
      WriteModel({.path = paths.onnx(), .format = ModelFormat::kOnnx, .pipes = Pipes::kRefused},
                 job,
                 graph,
                 weights,
                 metadata);
  if (!onnx.ok() && !absl::IsOutOfRange(onnx)) {  // ONNX ends at 2 GB
    return onnx;
  }
  return WriteModel(
      {.path = paths.safetensors(), .format = ModelFormat::kSafetensors, .pipes = Pipes::kRefused},
      job,
      graph,
      weights,
      metadata);
}

}  // namespace

absl::Status ExportModel(const v1::TrainingJob& job,
                         const ModelSource& source,
                         const exports::Metadata& metadata,
                         const RunPaths& paths) {
  ADAMANT_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(job::NetOf(job)));
  const ShardLayout layout(graph.parameters, static_cast<std::uint32_t>(source.holders.size()));
  ADAMANT_ASSIGN_OR_RETURN(const std::vector<float> weights, FetchModel(source, layout));
  const absl::Status written = WriteBoth(job, graph, weights, metadata, paths);
  // Unavailable would mean that a server is away and the export is worth another try.
  return absl::IsUnavailable(written) ? absl::InternalError(written.message()) : written;
}

}  // namespace adamant::local
