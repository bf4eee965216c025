#include "operator/cli/net_warning.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/statusor.h"
#include "operator/cli/console/text.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"
#include "services/common/model/model.h"

namespace adamant::cli {
namespace {

// What a layer makes of logits; nullptr: nothing that keeps a net from learning.
const char* WhatItDoes(model::LayerKind kind) {
  switch (kind) {
    case model::LayerKind::kRelu:
      return "a Relu cuts logits off at 0, where they get no gradient";
    case model::LayerKind::kSigmoid:
      return "a Sigmoid keeps logits between 0 and 1";
    case model::LayerKind::kTanh:
      return "a Tanh keeps logits between -1 and 1";
    case model::LayerKind::kDropout:
      return "a Dropout sets logits to 0 at random";
    default:
      return nullptr;
  }
}

std::string OutputWarning(const model::Graph& graph) {
  const model::Layer& output = graph.nodes[static_cast<std::size_t>(graph.output)].layer;
  const char* does = WhatItDoes(output.kind);
  return does == nullptr ? ""
                         : Text(
                               "spec.model.network: the output is layer %s: %s, and a net learns "
                               "little so; let it end with the layer before, as softmax is part "
                               "of the loss",
                               output.name.c_str(),
                               does);
}

std::string ShiftWarning(const v1::TrainingJob& job, const model::Graph& graph) {
  const double shift = job.spec().data().transformations().translate();
  const auto side = static_cast<double>(
      *std::min_element(graph.input.begin() + (graph.input.size() > 1 ? 1 : 0), graph.input.end()));
  return shift < side / 2 ? ""
                          : Text(
                                "spec.data.transformations.translate: with %g images of %g "
                                "pixels are shifted out of sight",
                                shift,
                                side);
}

}  // namespace

std::vector<std::string> NetWarnings(const v1::TrainingJob& job) {
  const absl::StatusOr<model::Graph> graph = model::BuildGraph(job::NetOf(job));
  std::vector<std::string> warnings;
  if (graph.ok()) {
    for (const std::string& warning : {OutputWarning(*graph), ShiftWarning(job, *graph)}) {
      if (!warning.empty()) {
        warnings.push_back(warning);
      }
    }
  }
  return warnings;
}

}  // namespace adamant::cli
