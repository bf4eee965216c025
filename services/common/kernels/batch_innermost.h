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

/// A max or average pool with any window, stride and padding; the gradient of a maximum goes to its
/// first largest input. Batches as above. Keeps nothing from Forward to Backward, and does not need
/// its output there. `relu`, for max pools: the layer is followed by a ReLU, which is done in the
/// same pass; `output` is then the ReLU's, and `output_error` the gradient with respect to that.
std::unique_ptr<Kernel<float>> MakePoolBatchInnermost(const Spec& spec, bool relu = false);

/// kFlatten between the batch innermost and another layout.
std::unique_ptr<Kernel<float>> MakeFlattenBatchInnermost(const Spec& spec);

}  // namespace adamant::kernels::internal
