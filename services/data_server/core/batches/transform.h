#pragma once

#include <cstdint>
#include <span>

namespace adamant::data_server {

/// Random changes made to training images: flip, scale, rotate, translate, in this order, as one
/// affine map about the image's centre.
struct TransformOptions {
  double translate_pixels = 0;  ///< largest shift in each direction
  double rotate_degrees = 0;    ///< largest rotation either way
  double scale = 0;             ///< largest relative change of size, below 1
  bool flip = false;            ///< mirror every other image left to right

  /// Returns whether the options change anything.
  [[nodiscard]] bool any() const {
    return translate_pixels > 0 || rotate_degrees > 0 || scale > 0 || flip;
  }
};

/// Sizes of one image: unsigned bytes [channels, height, width].
struct ImageShape {
  std::uint32_t channels = 1;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
};

/// Maps output pixels to where their value lies in the source image, in pixels:
/// source = (xx, xy; yx, yy) * (x, y) + (x0, y0).
struct InverseMap {
  double xx = 1, xy = 0, yx = 0, yy = 1;
  double x0 = 0, y0 = 0;
};

/// Draws the changes for one example: a function of its arguments alone, so that it does not matter
/// which server or thread makes them. Threads: any.
InverseMap DrawMap(const TransformOptions& options, const ImageShape& shape, std::uint64_t seed);

/// out[y][x] = source at the mapped place, interpolated bilinearly; 0 outside the image.
/// `source` and `out` hold one image each and do not overlap. Threads: any.
void Resample(const InverseMap& map,
              const ImageShape& shape,
              std::span<const std::uint8_t> source,
              std::span<std::uint8_t> out);

}  // namespace adamant::data_server
