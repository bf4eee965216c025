#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace adamant::worker {

/// Rule by which bytes become inputs: (byte - mean[channel]) / deviation[channel].
struct Normalisation {
  std::vector<float> mean;
  std::vector<float> deviation;

  friend bool operator==(const Normalisation&, const Normalisation&) = default;
};

/// Writes the normalised `pixels`, [examples, channels, plane], to the first of `inputs`.
void Normalise(const Normalisation& normalisation,
               std::size_t plane,
               std::span<const std::uint8_t> pixels,
               std::span<float> inputs);

}  // namespace adamant::worker
