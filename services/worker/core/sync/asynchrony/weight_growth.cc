#include "services/worker/core/sync/asynchrony/weight_growth.h"

#include <algorithm>
#include <cmath>

#include "services/common/tensor/initial_deviation.h"

namespace adamant::worker {
namespace {

constexpr std::uint64_t kPlacesOfTensor = 256;

// Of few values the deviation may be far from the one that they were drawn with.
constexpr std::uint64_t kFewestPlaces = 32;

}  // namespace

WeightGrowth::WeightGrowth(const UpdatePlan& plan, const std::vector<Parameter>& parameters) {
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const TensorPlan& tensor = plan.tensors[i];
    const double deviation = InitialDeviation(parameters[i]);
    if (!tensor.trained || tensor.size < kFewestPlaces || deviation == 0) {
      continue;
    }
    Sampled& sampled = tensors_.emplace_back();
    sampled.tensor = i;
    sampled.variance = deviation * deviation;
    const std::uint64_t step = std::max<std::uint64_t>(1, tensor.size / kPlacesOfTensor);
    for (std::uint64_t at = 0; at < tensor.size; at += step) {
      sampled.places.push_back(tensor.offset + at);
    }
  }
}

void WeightGrowth::Observe(std::span<const float> values) {
  double most = 0;
  for (const Sampled& sampled : tensors_) {
    double sum = 0;
    for (const std::uint64_t place : sampled.places) {
      sum += static_cast<double>(values[place]) * static_cast<double>(values[place]);
    }
    const double grown = sum / static_cast<double>(sampled.places.size()) / sampled.variance;
    if (!std::isnan(most) && !(grown <= most)) {
      most = grown;
      tensor_ = sampled.tensor;
    }
  }
  ratio_ = std::sqrt(most);
}

}  // namespace adamant::worker
