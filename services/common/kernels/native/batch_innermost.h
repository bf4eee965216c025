#pragma once

#include <memory>

#include "services/common/kernels/kernel.h"

// Own kernels for maps with the batch innermost (MapLayout::kBatchInnermost): a vector is the same
// element of up to kLanes examples, so channels, kernels and maps of any size waste no lane.
namespace adamant::kernels::internal {

/// A convolution with any kernel, stride, padding, dilation and groups. Batches are a multiple of
/// kLanes. Forward sums over input channels and kernel positions in that order in single precision.
///
/// Source: direct convolution in register tiles, as in Georganas et al. 2018, arXiv:1808.05567,
/// with examples instead of channels in a vector.
std::unique_ptr<Kernel<float>> MakeConv2dBatchInnermost(const Spec& spec);

/// kFlatten between the batch innermost and another layout.
std::unique_ptr<Kernel<float>> MakeFlattenBatchInnermost(const Spec& spec);

}  // namespace adamant::kernels::internal
