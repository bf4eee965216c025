#pragma once

#include <memory>

#include "services/common/kernels/kernel.h"

namespace adamant::kernels::internal {

/// A max or average pool with any window, stride and padding, on maps with the batch innermost
/// (batches are then a multiple of kLanes) or with the channels last; the gradient of a maximum
/// goes to its first largest input. Keeps nothing from Forward to Backward, and does not need its
/// output there. With Spec::relu, for max pools, the ReLU behind the layer is done in the same
/// pass: `output` is then the ReLU's, and `output_error` the gradient with respect to that.
std::unique_ptr<Kernel<float>> MakePool(const Spec& spec);

}  // namespace adamant::kernels::internal
