#pragma once

#include <memory>

#include "services/common/kernels/kernel.h"

namespace adamant::kernels::internal {

/// The largest batch for which it is better to read each weight once per pass, and to hand its
/// gradient over at once, than to multiply whole matrices (tests/bench/fully_connected_bench.cc).
inline constexpr std::int64_t kSmallBatch = 4;

/// A fully connected layer whose Backward hands over the gradient of some rows of the weight at a
/// time, so that it is never stored as a whole. Right for every batch; made for few examples.
std::unique_ptr<Kernel<float>> MakeFullyConnectedSmallBatch(const Spec& spec);

}  // namespace adamant::kernels::internal
