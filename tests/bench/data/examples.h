#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/model/model.h"

namespace adamant::bench {

/// Labelled inputs in memory, as a net takes them: normalised, channels first.
struct Examples {
  std::size_t features = 0;          ///< floats of one input
  std::vector<float> inputs;         ///< [size(), features]
  std::vector<std::int32_t> labels;  ///< one per example

  [[nodiscard]] std::size_t size() const { return labels.size(); }

  [[nodiscard]] std::span<const float> input(std::size_t index) const {
    return std::span(inputs).subspan(index * features, features);
  }
};

/// Noise in the shape of the net's input, with random labels: up to 60,000 examples and 128 MB.
Examples RandomExamples(const model::Graph& graph);

/// MNIST from the files MnistPaths(folder, prefix), normalised by the training set's mean and
/// deviation. Errors: as dataset::ReadIdx; InvalidArgument if they do not fit the net.
absl::StatusOr<Examples> ReadMnist(const std::string& folder,
                                   const std::string& prefix,
                                   const model::Graph& graph);

/// The numbers below `count` in a random order.
std::vector<std::uint32_t> Permutation(std::size_t count, std::uint64_t seed);

}  // namespace adamant::bench
