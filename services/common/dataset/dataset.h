#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace adamant::dataset {

/// Labelled images in memory. Images are unsigned bytes [channels, height, width], one example
/// after another.
/// Invariant: images.size() == size() * example_bytes().
struct Dataset {
  std::uint32_t channels = 1;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::vector<std::uint8_t> images;
  std::vector<std::uint8_t> labels;  ///< one per example

  [[nodiscard]] std::uint64_t size() const { return labels.size(); }

  [[nodiscard]] std::uint64_t example_bytes() const {
    return std::uint64_t{channels} * height * width;
  }

  [[nodiscard]] std::span<const std::uint8_t> image(std::uint64_t index) const {
    return std::span(images).subspan(index * example_bytes(), example_bytes());
  }

  /// Examples of the class that has most of them.
  [[nodiscard]] std::uint64_t most_frequent() const {
    std::array<std::uint64_t, 256> counts{};  // by label
    for (const std::uint8_t label : labels) {
      ++counts[label];
    }
    return *std::max_element(counts.begin(), counts.end());
  }
};

}  // namespace adamant::dataset
