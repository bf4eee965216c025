#pragma once

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
};

}  // namespace adamant::dataset
