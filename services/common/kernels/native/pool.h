#pragma once

#include <memory>

#include "services/common/kernels/kernel.h"

namespace adamant::kernels::internal {

/// The most inputs of a max pool's window in training: a byte says which of them is the largest.
inline constexpr std::int64_t kLargestMaxPool = 255;

/// Returns whether MakePool has a kernel for the window.
bool ServesPool(const Spec& spec);

/// A max or average pool with any stride and padding, on maps with the batch innermost (batches are
/// then a multiple of kLanes) or with the channels last; the gradient of a maximum goes to its
/// first largest input. Backward needs neither inputs nor output, but Operands::kept. With
/// Spec::relu, for max pools, the ReLU behind the layer is done in the same pass: `output` is then
/// the ReLU's, and `output_error` the gradient with respect to that.
std::unique_ptr<Kernel<float>> MakePool(const Spec& spec);

}  // namespace adamant::kernels::internal
