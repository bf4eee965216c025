#include "services/worker/core/sync/pushes/push_payload.h"

#include <algorithm>

namespace adamant::worker {
namespace {

PushPayload::Operands OperandsOf(const TensorPlan& plan,
                                 std::uint32_t tensor,
                                 const PushContent& content) {
  PushPayload::Operands operands;
  operands.tensor = tensor;
  operands.inputs = static_cast<std::uint32_t>(plan.inputs);
  operands.outputs = static_cast<std::uint32_t>(plan.outputs);
  for (const PushContent::Part& part : content.parts) {
    const Accumulator& accumulator = *part.accumulator;
    const Accumulator::Rows& rows = accumulator.rows[tensor];
    operands.rows += static_cast<std::uint32_t>(accumulator.filled_rows);
    operands.activations.push_back(
        rows.activations.span().first(accumulator.filled_rows * plan.inputs));
    operands.errors.push_back(rows.errors.span().first(accumulator.filled_rows * plan.outputs));
  }
  return operands;
}

}  // namespace

PushPayload MakePayload(const UpdatePlan& plan,
                        const ShardLayout& layout,
                        const PushContent& content,
                        const PushMessage& message) {
  PushPayload payload;
  const std::span<const float> values = content.parts.front().accumulator->values.span();
  for (const ShardUpdate& update : message.updates) {
    const Shard& shard = layout.shards()[update.shard];
    const TensorPlan& tensor = plan.tensors[shard.tensor];
    ShardUpdate& out = payload.updates.emplace_back(update);
    if (!tensor.activations) {
      out.kind = tensor.optimiser.location == OptimiserLocation::kServer
                     ? UpdateKind::kGradient
                     : UpdateKind::kWeightChange;
      out.values = values.subspan(tensor.offset + shard.begin, shard.size());
      continue;
    }
    if (payload.operands.empty() || payload.operands.back().tensor != shard.tensor) {
      payload.operands.push_back(OperandsOf(tensor, shard.tensor, content));
    }
    out.kind = UpdateKind::kOuterProduct;
    out.operands = static_cast<std::uint32_t>(payload.operands.size() - 1);
  }
  return payload;
}

}  // namespace adamant::worker
