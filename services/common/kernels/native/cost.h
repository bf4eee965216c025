#pragma once

#include <optional>

#include "services/common/kernels/kernel.h"

namespace adamant::kernels::internal {

/// Backend::Cost of the fast kernels: what the arithmetic takes at the share of a core's peak that
/// kernels of this kind reach with these channels (docs/bench/engine.md), or what moving the bytes
/// takes.
std::optional<double> EstimateCost(const Spec& spec);

/// Returns whether a convolution with the channels last is better done by our own kernel than by
/// oneDNN: with few examples, whose channels leave many lanes of oneDNN's vectors empty.
bool OwnChannelsLastIsBest(const Spec& spec);

/// Returns whether a pool is better done by our own kernel than by oneDNN: always with the batch
/// innermost; with the channels last for few examples, unless ServesPool.
bool OwnPoolIsBest(const Spec& spec);

}  // namespace adamant::kernels::internal
