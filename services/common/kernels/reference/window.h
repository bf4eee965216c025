#pragma once

#include <cstdint>

#include "services/common/base/check.h"
#include "services/common/kernels/kernel.h"

namespace adamant::kernels::internal {

/// The sizes of a sliding window over maps: convolutions and pools.
struct Window {
  explicit Window(const Spec& spec)
      : batch(spec.batch),
        in_channels(spec.inputs[0][0]),
        in{spec.inputs[0][1], spec.inputs[0][2]},
        out_channels(spec.output[0]),
        out{spec.output[1], spec.output[2]},
        kernel(spec.layer.kernel),
        stride(spec.layer.stride),
        padding(spec.layer.padding),
        dilation(spec.layer.dilation),
        groups(spec.layer.groups) {
    ADAMANT_CHECK(spec.layout == MapLayout::kChannelsFirst, "the reference is channels first");
  }

  /// Calls visit(kernel_position, input_position), both as offsets into one plane, for every place
  /// of the window at output (y, x) that lies on the input rather than on padding.
  template <class Visit>
  void ForEach(std::int64_t y, std::int64_t x, Visit visit) const {
    for (std::int64_t i = 0; i < kernel.height; ++i) {
      const std::int64_t row = y * stride.height - padding.height + i * dilation.height;
      if (row < 0 || row >= in.height) {
        continue;
      }
      for (std::int64_t j = 0; j < kernel.width; ++j) {
        const std::int64_t column = x * stride.width - padding.width + j * dilation.width;
        if (column >= 0 && column < in.width) {
          visit(i * kernel.width + j, row * in.width + column);
        }
      }
    }
  }

  [[nodiscard]] std::int64_t in_plane() const { return in.height * in.width; }
  [[nodiscard]] std::int64_t out_plane() const { return out.height * out.width; }
  [[nodiscard]] std::int64_t kernel_plane() const { return kernel.height * kernel.width; }

  std::int64_t batch;
  std::int64_t in_channels;
  model::Extent2d in;
  std::int64_t out_channels;
  model::Extent2d out;
  model::Extent2d kernel;
  model::Extent2d stride;
  model::Extent2d padding;
  model::Extent2d dilation;
  std::int64_t groups;
};

}  // namespace adamant::kernels::internal
