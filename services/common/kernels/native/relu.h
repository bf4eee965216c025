#pragma once

#include <memory>

#include "services/common/kernels/kernel.h"

namespace adamant::kernels::internal {

/// kRelu on maps of any layout, and in place: a comparison per element, for which a call of a
/// library would take longer than the layer where examples are few. What is no number becomes 0.
std::unique_ptr<Kernel<float>> MakeRelu(const Spec& spec);

}  // namespace adamant::kernels::internal
