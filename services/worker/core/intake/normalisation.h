#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "services/common/protocol/work.h"

namespace adamant::worker {

using protocol::Normalisation;

/// Writes the normalised `pixels`, [examples, channels, plane], to the first of `inputs`.
void Normalise(const Normalisation& normalisation,
               std::size_t plane,
               std::span<const std::uint8_t> pixels,
               std::span<float> inputs);

}  // namespace adamant::worker
