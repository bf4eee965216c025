#pragma once

#include <memory>

#include "services/common/kernels/kernel.h"

// Own kernels for maps with the channels last (MapLayout::kChannelsLast): a vector is one pixel's
// channels, as with oneDNN, but what is left of the last vector costs no more than that vector, and
// a call costs little. Made for few examples, of which each is worked through by itself.
namespace adamant::kernels::internal {

/// A convolution with any batch, kernel, stride, padding, dilation and groups. Sums are over
/// kernel positions and then input channels, in single precision.
///
/// Source: direct convolution in register tiles of pixels x channels, as in Georganas et al. 2018,
/// arXiv:1808.05567.
std::unique_ptr<Kernel<float>> MakeConv2dChannelsLast(const Spec& spec);

}  // namespace adamant::kernels::internal
