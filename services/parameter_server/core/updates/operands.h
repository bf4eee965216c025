#pragma once

#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/updates/messages.h"

namespace adamant::parameter_server {

/// Returns true if `operands` have rows, and belong to a layer of the model. Their numbers are not
/// looked at.
bool FitsTensor(const ShardLayout& layout, const Operands& operands);

}  // namespace adamant::parameter_server
