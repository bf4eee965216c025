#include "services/worker/core/intake/normalisation.h"

namespace adamant::worker {

void Normalise(const Normalisation& normalisation,
               std::size_t plane,
               std::span<const std::uint8_t> pixels,
               std::span<float> inputs) {
  const std::size_t channels = normalisation.mean.size();
  const std::size_t planes = pixels.size() / plane;
  const std::uint8_t* pixel = pixels.data();
  float* value = inputs.data();
  for (std::size_t i = 0; i < planes; ++i) {
    const float mean = normalisation.mean[i % channels];
    const float deviation = normalisation.deviation[i % channels];
    for (std::size_t j = 0; j < plane; ++j) {
      value[j] = (static_cast<float>(pixel[j]) - mean) / deviation;
    }
    pixel += plane;
    value += plane;
  }
}

}  // namespace adamant::worker
