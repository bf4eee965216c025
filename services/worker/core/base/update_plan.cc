#include "services/worker/core/base/update_plan.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "services/common/base/check.h"
#include "services/common/base/status_macros.h"

namespace adamant::worker {
namespace {

/// Bytes of the rows of `tensor` in a push of one accumulator.
std::uint64_t OperandBytes(const TensorPlan& tensor, const UpdatePlanOptions& options) {
  return options.push_every * options.batch_size * (tensor.inputs + tensor.outputs) * sizeof(float);
}

absl::StatusOr<bool> UsesActivations(const TensorPlan& tensor,
                                     const Parameter& parameter,
                                     std::uint64_t shards,
                                     UpdateProtocol protocol,
                                     const UpdatePlanOptions& options) {
  if (tensor.inputs == 0 || !tensor.trained || protocol == UpdateProtocol::kGradients) {
    return false;
  }
  const bool on_server = tensor.optimiser.location == OptimiserLocation::kServer;
  const std::uint64_t rows_bytes = OperandBytes(tensor, options);
  if (protocol == UpdateProtocol::kAuto) {
    // Every server that holds a part of the tensor needs the rows.
    const std::uint64_t receivers = std::min(shards, options.servers);
    return on_server && rows_bytes <= options.max_operand_bytes &&
           receivers * rows_bytes < tensor.size * sizeof(float);
  }
  if (!on_server) {
    return absl::InvalidArgumentError("layer " + parameter.layer +
                                      ": Activations need optimiser.location: Server");
  }
  if (rows_bytes > options.max_operand_bytes) {
    return absl::InvalidArgumentError(
        "layer " + parameter.layer + ": the activations of " + std::to_string(options.push_every) +
        " batches take " + std::to_string(rows_bytes) + " bytes, more than the " +
        std::to_string(options.max_operand_bytes) +
        " that a message may have; lower pushEvery or choose Gradients");
  }
  return true;
}

}  // namespace

absl::StatusOr<UpdatePlan> UpdatePlan::Make(const model::Graph& graph,
                                            const ShardLayout& layout,
                                            const UpdatePlanOptions& options) {
  const std::vector<Parameter>& parameters = layout.parameters();
  ADAMANT_CHECK(options.optimisers.size() == parameters.size() &&
                    options.protocols.size() == parameters.size(),
                "an optimiser and a protocol for every tensor");
  UpdatePlan plan;
  plan.elements = layout.elements();
  plan.max_rows = options.push_every * options.batch_size;
  plan.max_summed = options.threads;
  plan.tensors.resize(parameters.size());
  for (const model::Graph::Node& node : graph.nodes) {
    if (node.layer.kind == model::LayerKind::kFullyConnected) {
      TensorPlan& weight = plan.tensors[static_cast<std::size_t>(node.weight)];
      const Shape& shape = parameters[static_cast<std::size_t>(node.weight)].shape;
      weight.outputs = static_cast<std::uint64_t>(shape[0]);
      weight.inputs = static_cast<std::uint64_t>(shape[1]);
    }
  }
  for (std::uint32_t i = 0; i < parameters.size(); ++i) {
    TensorPlan& tensor = plan.tensors[i];
    const std::span<const Shard> shards = layout.ShardsOf(i);
    tensor.offset = layout.OffsetOf(i);
    tensor.size = shards.back().end;
    tensor.optimiser = options.optimisers[i];
    tensor.trained = tensor.optimiser.rate > 0;
    ADAMANT_ASSIGN_OR_RETURN(
        tensor.activations,
        UsesActivations(tensor, parameters[i], shards.size(), options.protocols[i], options));
    if (!tensor.trained) {
      continue;
    }
    if (tensor.activations) {
      plan.max_summed =
          std::min(plan.max_summed, options.max_operand_bytes / OperandBytes(tensor, options));
    }
  }
  for (const Shard& shard : layout.shards()) {
    const TensorPlan& tensor = plan.tensors[shard.tensor];
    if (tensor.trained) {
      const std::uint64_t rows_bytes = plan.max_summed * OperandBytes(tensor, options);
      plan.pushed.push_back({.shard = shard.id,
                             .bytes = tensor.activations ? 0 : shard.size() * sizeof(float),
                             .operand_bytes = tensor.activations ? rows_bytes : 0});
    }
  }
  return plan;
}

std::uint64_t UpdatePlan::StateSize() const {
  const bool needed = std::any_of(tensors.begin(), tensors.end(), [](const TensorPlan& tensor) {
    return tensor.optimiser.location == OptimiserLocation::kWorker &&
           StatePerWeight(tensor.optimiser.kind) > 0;
  });
  return needed ? elements : 0;
}

const TensorPlan& UpdatePlan::TensorOf(std::uint64_t parameter) const {
  const auto after = std::upper_bound(
      tensors.begin(), tensors.end(), parameter, [](std::uint64_t value, const TensorPlan& tensor) {
        return value < tensor.offset;
      });
  ADAMANT_CHECK(after != tensors.begin() && parameter < elements, "one of the parameters");
  return *std::prev(after);
}

}  // namespace adamant::worker
