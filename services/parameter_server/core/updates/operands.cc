#include "services/parameter_server/core/updates/operands.h"

namespace adamant::parameter_server {

bool FitsTensor(const ShardLayout& layout, const Operands& operands) {
  return operands.rows > 0 && operands.tensor < layout.parameters().size() &&
         layout.parameters()[operands.tensor].shape == Shape{operands.outputs, operands.inputs};
}

}  // namespace adamant::parameter_server
