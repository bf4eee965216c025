#include "tests/bench/data/examples.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "services/common/base/rng.h"
#include "services/common/base/status_macros.h"
#include "services/common/dataset/idx.h"
#include "services/common/tensor/shape.h"

namespace adamant::bench {
namespace {

constexpr float kMean = 0.1307f;
constexpr float kDeviation = 0.3081f;

}  // namespace

Examples RandomExamples(const model::Graph& graph) {
  constexpr std::size_t kMostExamples = 60'000;
  constexpr std::size_t kMostFloats = std::size_t{1} << 25;
  Examples examples;
  examples.features = static_cast<std::size_t>(*ElementCount(graph.input));
  const std::size_t count =
      std::clamp(kMostFloats / examples.features, std::size_t{1}, kMostExamples);
  Rng rng(1);
  examples.inputs.resize(count * examples.features);
  for (float& value : examples.inputs) {
    value = static_cast<float>(rng.Uniform(-1, 1));
  }
  examples.labels.resize(count);
  for (std::int32_t& label : examples.labels) {
    label = static_cast<std::int32_t>(rng.Below(static_cast<std::uint64_t>(graph.classes)));
  }
  return examples;
}

absl::StatusOr<Examples> ReadMnist(const std::string& folder,
                                   const std::string& prefix,
                                   const model::Graph& graph) {
  ADAMANT_ASSIGN_OR_RETURN(
      const dataset::Dataset data,
      dataset::ReadIdx(dataset::MnistPaths(folder, prefix),
                       {.classes = static_cast<std::uint32_t>(graph.classes)}));
  const Shape shape = {data.channels, data.height, data.width};
  if (shape != graph.input) {
    return absl::InvalidArgumentError("the images are " + ToString(shape) +
                                      ", the net's input is " + ToString(graph.input));
  }
  Examples examples;
  examples.features = data.example_bytes();
  examples.inputs.resize(data.images.size());
  std::ranges::transform(data.images, examples.inputs.begin(), [](std::uint8_t pixel) {
    return (static_cast<float>(pixel) / 255 - kMean) / kDeviation;
  });
  examples.labels.assign(data.labels.begin(), data.labels.end());
  return examples;
}

std::vector<std::uint32_t> Permutation(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  Rng rng(seed);
  for (std::size_t i = count; i > 1; --i) {
    std::swap(order[i - 1], order[rng.Below(i)]);
  }
  return order;
}

}  // namespace adamant::bench
