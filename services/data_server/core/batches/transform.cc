#include "services/data_server/core/batches/transform.h"

#include <cmath>
#include <numbers>

#include "services/common/base/rng.h"

namespace adamant::data_server {
namespace {

// Pixels of one channel; 0 outside.
class Plane {
 public:
  Plane(std::span<const std::uint8_t> pixels, std::uint32_t height, std::uint32_t width)
      : pixels_(pixels), height_(height), width_(width) {}

  [[nodiscard]] float At(std::int64_t y, std::int64_t x) const {
    const bool inside = y >= 0 && x >= 0 && y < height_ && x < width_;
    return inside ? static_cast<float>(pixels_[static_cast<std::size_t>(y * width_ + x)]) : 0.0f;
  }

  [[nodiscard]] float Interpolate(double y, double x) const {
    if (!(x > -1 && y > -1 && x < static_cast<double>(width_) &&
          y < static_cast<double>(height_))) {
      return 0.0f;
    }
    const double top = std::floor(y);
    const double left = std::floor(x);
    const auto fy = static_cast<float>(y - top);
    const auto fx = static_cast<float>(x - left);
    const auto iy = static_cast<std::int64_t>(top);
    const auto ix = static_cast<std::int64_t>(left);
    const float upper = At(iy, ix) + fx * (At(iy, ix + 1) - At(iy, ix));
    const float lower = At(iy + 1, ix) + fx * (At(iy + 1, ix + 1) - At(iy + 1, ix));
    return upper + fy * (lower - upper);
  }

 private:
  const std::span<const std::uint8_t> pixels_;
  const std::int64_t height_;
  const std::int64_t width_;
};

}  // namespace

InverseMap DrawMap(const TransformOptions& options, const ImageShape& shape, std::uint64_t seed) {
  Rng rng(seed);
  const bool mirrored = rng.Uniform() < 0.5 && options.flip;
  const double size = 1.0 + rng.Uniform(-options.scale, options.scale);
  const double angle =
      rng.Uniform(-options.rotate_degrees, options.rotate_degrees) * std::numbers::pi / 180.0;
  const double shift_x = rng.Uniform(-options.translate_pixels, options.translate_pixels);
  const double shift_y = rng.Uniform(-options.translate_pixels, options.translate_pixels);
  // Backwards: from the output, undo the shift, the rotation, the scaling and the mirror.
  const double c = std::cos(angle) / size;
  const double s = std::sin(angle) / size;
  const double mirror = mirrored ? -1.0 : 1.0;
  InverseMap map{.xx = mirror * c, .xy = mirror * s, .yx = -s, .yy = c};
  const double centre_x = (shape.width - 1) / 2.0;
  const double centre_y = (shape.height - 1) / 2.0;
  const double x = centre_x + shift_x;
  const double y = centre_y + shift_y;
  map.x0 = centre_x - map.xx * x - map.xy * y;
  map.y0 = centre_y - map.yx * x - map.yy * y;
  return map;
}

void Resample(const InverseMap& map,
              const ImageShape& shape,
              std::span<const std::uint8_t> source,
              std::span<std::uint8_t> out) {
  const std::size_t plane_bytes = std::size_t{shape.height} * shape.width;
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    const Plane plane(
        source.subspan(channel * plane_bytes, plane_bytes), shape.height, shape.width);
    std::uint8_t* pixel = out.data() + channel * plane_bytes;
    for (std::uint32_t y = 0; y < shape.height; ++y) {
      for (std::uint32_t x = 0; x < shape.width; ++x) {
        const float value =
            plane.Interpolate(map.yx * x + map.yy * y + map.y0, map.xx * x + map.xy * y + map.x0);
        // Values are 0 to 255.
        *pixel++ = static_cast<std::uint8_t>(value + 0.5f);  // NOLINT(bugprone-incorrect-roundings)
      }
    }
  }
}

}  // namespace adamant::data_server
