#pragma once

#include <cstdint>
#include <span>

#include "services/parameter_server/core/updates/messages.h"

namespace adamant::parameter_server {

/// The elements [begin, begin + gradient.size()) of the row-major matrix errors^T x activations
/// [outputs, inputs]:
///
///   gradient[k] = sum over n of errors[n][o] * activations[n][i],  with begin + k = o * inputs + i
///
/// The range may start and end within a row. Each element is summed from n = 0 up, so how a matrix
/// is cut into ranges does not change the bits; whether the CPU fuses multiply and add does.
/// Shapes: see Operands; activations and errors have the sizes that its numbers say.
/// Threads: safe on disjoint gradients.
void OuterProduct(const Operands& operands, std::uint64_t begin, std::span<float> gradient);

}  // namespace adamant::parameter_server
