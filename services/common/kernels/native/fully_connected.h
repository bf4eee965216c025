#pragma once

#include <memory>

#include "services/common/kernels/kernel.h"

// Fully connected layers whose Backward hands over the gradient of some rows of the weight at a
// time, so that it is never stored as a whole. They differ in speed alone.
namespace adamant::kernels::internal {

/// The largest batch for which own loops, which read each weight once per pass, are quicker than
/// products of matrices (tests/bench/fully_connected_bench.cc).
inline constexpr std::int64_t kSmallBatch = 8;

std::unique_ptr<Kernel<float>> MakeFullyConnectedSmallBatch(const Spec& spec);

std::unique_ptr<Kernel<float>> MakeFullyConnectedOneDnn(const Spec& spec);

}  // namespace adamant::kernels::internal
