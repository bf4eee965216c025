#include "operator/cli/warnings/net_warning.h"

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

}  // namespace

std::string NetWarning(const v1::TrainingJob& job) {
  const absl::StatusOr<model::Graph> graph = model::BuildGraph(job::NetOf(job));
  if (!graph.ok()) {
    return "";
  }
  const model::Layer& output = graph->nodes[static_cast<std::size_t>(graph->output)].layer;
  const char* does = WhatItDoes(output.kind);
  return does == nullptr
             ? ""
             : Text(
                   "spec.model.network: the output is layer %s: %s, and a net learns little so; "
                   "let it end with the layer before, as softmax is part of the loss",
                   output.name.c_str(),
                   does);
}

}  // namespace adamant::cli
