// Own pools. A pixel of a map holds a block of examples, or all channels. Loops, outermost first:
// map (block of examples and channel, or example); row and column of the output; part of the pixel
// that a vector holds; row and column of the window, the latter two unrolled for windows of 2x2 and
// 3x3, where these lie wholly on the input. Nothing is kept between the passes: the backward one
// finds the largest input again, which costs less than to store and read its place.
#include "services/common/kernels/pool.h"

#include "services/common/kernels/simd_targets.h"
#undef HWY_TARGET_INCLUDE
// NOLINTNEXTLINE(readability-identifier-naming)
#define HWY_TARGET_INCLUDE "services/common/kernels/pool.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/check.h"
#include "services/common/kernels/isa.h"
#include "services/common/kernels/simd-inl.h"

#ifndef ADAMANT_KERNELS_POOL_SHAPE
#define ADAMANT_KERNELS_POOL_SHAPE
namespace adamant::kernels::internal {

/// The inputs first .. first + count - 1 that one output sees along an axis.
struct PoolRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// A pool in units of pixels.
struct PoolShape {
  std::string name;
  bool relu = false;
  std::int64_t maps = 0;
  std::int64_t pixel = 0;  // floats of one
  std::int64_t in_width = 0;
  std::int64_t in_plane = 0;
  std::int64_t window = 0;         // area, padding included
  std::vector<PoolRange> rows;     // by row of the output
  std::vector<PoolRange> columns;  // by column
  bool overlap = false;            // an input may belong to several windows
  bool partition = false;          // each input belongs to exactly one
};

}  // namespace adamant::kernels::internal
#endif

HWY_BEFORE_NAMESPACE();
namespace adamant::kernels::internal::HWY_NAMESPACE {

/// What one output sees, as much of it as lies on the input.
struct PoolWindow {
  std::int64_t offset;  // of the first input in its plane, in floats
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t row_step;
  std::int64_t column_step;
};

class Pool : public Kernel<float> {
 public:
  explicit Pool(PoolShape shape) : shape_(std::move(shape)) {}

  [[nodiscard]] std::string name() const final {
    return "own " + shape_.name + " " + SupportedIsas().front();
  }

  void Forward(const Operands<float>& o) final {
    for (std::int64_t map = 0; map < shape_.maps; ++map) {
      ForwardMap(o.inputs[0] + map * InPlane(), o.output + map * OutPlane());
    }
  }

  void Backward(const Operands<float>& o) final {
    if (o.input_errors[0] == nullptr) {
      return;
    }
    for (std::int64_t map = 0; map < shape_.maps; ++map) {
      float* const errors = o.input_errors[0] + map * InPlane();
      if (!shape_.partition) {
        std::fill_n(errors, InPlane(), 0.0f);
      }
      BackwardMap(o.inputs[0] + map * InPlane(), o.output_error + map * OutPlane(), errors);
    }
  }

 protected:
  virtual void ForwardMap(const float* input, float* output) const = 0;

  /// `input_error` is zeros unless windows partition the map.
  virtual void BackwardMap(const float* input,
                           const float* output_error,
                           float* input_error) const = 0;

  [[nodiscard]] const PoolShape& shape() const { return shape_; }

  [[nodiscard]] PoolWindow WindowOf(const PoolRange& row, const PoolRange& column) const {
    return {.offset = (row.first * shape_.in_width + column.first) * shape_.pixel,
            .rows = row.count,
            .columns = column.count,
            .row_step = shape_.in_width * shape_.pixel,
            .column_step = shape_.pixel};
  }

  /// Calls `visit(window, at, lanes)` for the windows of a map, and in each for the floats of a
  /// pixel from `at` on that a vector holds: `lanes` of them, a constant but for the last.
  template <class Visit>
  HWY_INLINE void ForParts(const Visit& visit) const {
    const std::int64_t pixel = shape_.pixel;
    for (const PoolRange& row : shape_.rows) {
      for (const PoolRange& column : shape_.columns) {
        const PoolWindow window = WindowOf(row, column);
        std::int64_t part = 0;
        for (; part + kVector <= pixel; part += kVector) {
          visit(window, window.offset + part, kVector);
        }
        if (part < pixel) {
          visit(window, window.offset + part, pixel - part);
        }
      }
    }
  }

 private:
  [[nodiscard]] std::int64_t InPlane() const { return shape_.in_plane * shape_.pixel; }
  [[nodiscard]] std::int64_t OutPlane() const {
    return static_cast<std::int64_t>(shape_.rows.size() * shape_.columns.size()) * shape_.pixel;
  }

  const PoolShape shape_;
};

/// LoadFirst and StoreFirst, without a mask where all lanes are there.
HWY_INLINE Vector Load(std::int64_t lanes, const float* from) {
  const Floats d;
  return lanes == kVector ? hn::LoadU(d, from) : LoadFirst(lanes, from);
}

HWY_INLINE void Store(std::int64_t lanes, Vector values, float* to) {
  const Floats d;
  lanes == kVector ? hn::StoreU(values, d, to) : StoreFirst(lanes, values, to);
}

/// Whether the loops for H x W serve the window; those for 0 x 0 serve all.
template <int H, int W>
HWY_INLINE bool Serves(const PoolWindow& window) {
  return window.rows == H && window.columns == W;
}

/// Writes, or adds where windows overlap.
HWY_INLINE void Give(std::int64_t lanes, Vector value, bool add, float* to) {
  Store(lanes, add ? hn::Add(Load(lanes, to), value) : value, to);
}

/// Windows of H x W, or of any size if these are 0; those at a border may see less. The gradient
/// goes to the first largest input, or the last that is no number.
template <int H, int W>
class MaxPool final : public Pool {
 public:
  using Pool::Pool;

 protected:
  void ForwardMap(const float* input, float* output) const override {
    const bool relu = shape().relu;
    ForParts([&](const PoolWindow& window, std::int64_t at, std::int64_t lanes) HWY_ATTR {
      const Floats d;
      const Vector value = Find(lanes, input + at, window).value;
      const Vector positive = hn::IfThenElseZero(hn::Gt(value, hn::Zero(d)), value);
      Store(lanes, relu ? positive : value, output);
      output += lanes;
    });
  }

  void BackwardMap(const float* input,
                   const float* output_error,
                   float* input_error) const override {
    ForParts([&](const PoolWindow& window, std::int64_t at, std::int64_t lanes) HWY_ATTR {
      const Largest largest = Find(lanes, input + at, window);
      Distribute(lanes, largest, output_error, window, input_error + at);
      output_error += lanes;
    });
  }

 private:
  struct Largest {
    Vector value;
    Vector place;  // in the window, counted row by row
  };

  HWY_INLINE static Largest Find(std::int64_t lanes, const float* at, const PoolWindow& window) {
    if constexpr (H > 0) {
      if (Serves<H, W>(window)) {
        return FindIn<H, W>(lanes, at, window);
      }
    }
    return FindIn<0, 0>(lanes, at, window);
  }

  template <int Rows, int Columns>
  HWY_INLINE static Largest FindIn(std::int64_t lanes, const float* at, const PoolWindow& window) {
    const Floats d;
    const std::int64_t rows = Rows > 0 ? Rows : window.rows;
    const std::int64_t columns = Columns > 0 ? Columns : window.columns;
    Largest result = {Load(lanes, at), hn::Zero(d)};  // the first is it until a larger one comes
    HWY_UNROLL(3)
    for (std::int64_t i = 0; i < rows; ++i) {
      HWY_UNROLL(3)
      for (std::int64_t j = i == 0 ? 1 : 0; j < columns; ++j) {
        const Vector x = Load(lanes, at + i * window.row_step + j * window.column_step);
        const auto larger = hn::Or(hn::Gt(x, result.value), hn::IsNaN(x));
        const Vector place = hn::Set(d, static_cast<float>(i * columns + j));
        result.value = hn::IfThenElse(larger, x, result.value);
        result.place = hn::IfThenElse(larger, place, result.place);
      }
    }
    return result;
  }

  HWY_INLINE void Distribute(std::int64_t lanes,
                             const Largest& largest,
                             const float* output_error,
                             const PoolWindow& window,
                             float* to) const {
    if constexpr (H > 0) {
      if (Serves<H, W>(window)) {
        return DistributeIn<H, W>(lanes, largest, output_error, window, to);
      }
    }
    DistributeIn<0, 0>(lanes, largest, output_error, window, to);
  }

  template <int Rows, int Columns>
  HWY_INLINE void DistributeIn(std::int64_t lanes,
                               const Largest& largest,
                               const float* output_error,
                               const PoolWindow& window,
                               float* to) const {
    const Floats d;
    const std::int64_t rows = Rows > 0 ? Rows : window.rows;
    const std::int64_t columns = Columns > 0 ? Columns : window.columns;
    Vector error = Load(lanes, output_error);
    if (shape().relu) {
      error = hn::IfThenElseZero(hn::Gt(largest.value, hn::Zero(d)), error);
    }
    HWY_UNROLL(3)
    for (std::int64_t i = 0; i < rows; ++i) {
      HWY_UNROLL(3)
      for (std::int64_t j = 0; j < columns; ++j) {
        const Vector place = hn::Set(d, static_cast<float>(i * columns + j));
        Give(lanes,
             hn::IfThenElseZero(hn::Eq(largest.place, place), error),
             shape().overlap,
             to + i * window.row_step + j * window.column_step);
      }
    }
  }
};

/// As MaxPool. Divides by the whole window, padding included.
template <int H, int W>
class AveragePool final : public Pool {
 public:
  using Pool::Pool;

 protected:
  void ForwardMap(const float* input, float* output) const override {
    const auto area = static_cast<float>(shape().window);
    ForParts([&](const PoolWindow& window, std::int64_t at, std::int64_t lanes) HWY_ATTR {
      const Floats d;
      Store(lanes, hn::Div(SumOf(lanes, input + at, window), hn::Set(d, area)), output);
      output += lanes;
    });
  }

  void BackwardMap(const float* /*input*/,
                   const float* output_error,
                   float* input_error) const override {
    const auto area = static_cast<float>(shape().window);
    ForParts([&](const PoolWindow& window, std::int64_t at, std::int64_t lanes) HWY_ATTR {
      const Floats d;
      const Vector share = hn::Div(Load(lanes, output_error), hn::Set(d, area));
      Distribute(lanes, share, window, input_error + at);
      output_error += lanes;
    });
  }

 private:
  HWY_INLINE static Vector SumOf(std::int64_t lanes, const float* at, const PoolWindow& window) {
    if constexpr (H > 0) {
      if (Serves<H, W>(window)) {
        return SumIn<H, W>(lanes, at, window);
      }
    }
    return SumIn<0, 0>(lanes, at, window);
  }

  template <int Rows, int Columns>
  HWY_INLINE static Vector SumIn(std::int64_t lanes, const float* at, const PoolWindow& window) {
    const Floats d;
    const std::int64_t rows = Rows > 0 ? Rows : window.rows;
    const std::int64_t columns = Columns > 0 ? Columns : window.columns;
    Vector sum = hn::Zero(d);
    HWY_UNROLL(3)
    for (std::int64_t i = 0; i < rows; ++i) {
      HWY_UNROLL(3)
      for (std::int64_t j = 0; j < columns; ++j) {
        sum = hn::Add(sum, Load(lanes, at + i * window.row_step + j * window.column_step));
      }
    }
    return sum;
  }

  HWY_INLINE void Distribute(std::int64_t lanes,
                             Vector share,
                             const PoolWindow& window,
                             float* to) const {
    if constexpr (H > 0) {
      if (Serves<H, W>(window)) {
        return DistributeIn<H, W>(lanes, share, window, to);
      }
    }
    DistributeIn<0, 0>(lanes, share, window, to);
  }

  template <int Rows, int Columns>
  HWY_INLINE void DistributeIn(std::int64_t lanes,
                               Vector share,
                               const PoolWindow& window,
                               float* to) const {
    const std::int64_t rows = Rows > 0 ? Rows : window.rows;
    const std::int64_t columns = Columns > 0 ? Columns : window.columns;
    HWY_UNROLL(3)
    for (std::int64_t i = 0; i < rows; ++i) {
      HWY_UNROLL(3)
      for (std::int64_t j = 0; j < columns; ++j) {
        Give(lanes, share, shape().overlap, to + i * window.row_step + j * window.column_step);
      }
    }
  }
};

template <int H, int W>
std::unique_ptr<Kernel<float>> MakePoolOf(const Spec& spec, PoolShape shape) {
  if (spec.layer.kind == model::LayerKind::kMaxPool) {
    return std::make_unique<MaxPool<H, W>>(std::move(shape));
  }
  return std::make_unique<AveragePool<H, W>>(std::move(shape));
}

std::unique_ptr<Kernel<float>> MakePoolFor(const Spec& spec, PoolShape shape) {
  const model::Extent2d& kernel = spec.layer.kernel;
  if (kernel.height == 2 && kernel.width == 2) {
    return MakePoolOf<2, 2>(spec, std::move(shape));
  }
  if (kernel.height == 3 && kernel.width == 3) {
    return MakePoolOf<3, 3>(spec, std::move(shape));
  }
  return MakePoolOf<0, 0>(spec, std::move(shape));
}

}  // namespace adamant::kernels::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace adamant::kernels::internal {
namespace {

std::vector<PoolRange> RangesOf(std::int64_t in,
                                std::int64_t out,
                                std::int64_t kernel,
                                std::int64_t stride,
                                std::int64_t padding) {
  std::vector<PoolRange> ranges;
  for (std::int64_t i = 0; i < out; ++i) {
    const std::int64_t begin = i * stride - padding;
    const std::int64_t first = std::max<std::int64_t>(begin, 0);
    ranges.push_back({first, std::min(begin + kernel, in) - first});
  }
  return ranges;
}

std::int64_t Total(const std::vector<PoolRange>& ranges) {
  std::int64_t total = 0;
  for (const PoolRange& range : ranges) {
    total += range.count;
  }
  return total;
}

}  // namespace

HWY_EXPORT(MakePoolFor);

std::unique_ptr<Kernel<float>> MakePool(const Spec& spec) {
  const bool innermost = spec.layout == MapLayout::kBatchInnermost;
  ADAMANT_CHECK(innermost ? spec.batch % kLanes == 0 : spec.layout == MapLayout::kChannelsLast,
                "whole blocks of examples, or the channels last");
  ADAMANT_CHECK(!spec.relu || spec.layer.kind == model::LayerKind::kMaxPool,
                "only the largest input is the same before and behind a ReLU");
  const model::Layer& l = spec.layer;
  const Shape& in = spec.inputs[0];
  const Shape& out = spec.output;
  PoolShape shape = {
      .name = innermost ? "batch innermost" : "channels last",
      .relu = spec.relu,
      .maps = innermost ? spec.batch / kLanes * out[0] : spec.batch,
      .pixel = innermost ? kLanes : out[0],
      .in_width = in[2],
      .in_plane = in[1] * in[2],
      .window = l.kernel.height * l.kernel.width,
      .rows = RangesOf(in[1], out[1], l.kernel.height, l.stride.height, l.padding.height),
      .columns = RangesOf(in[2], out[2], l.kernel.width, l.stride.width, l.padding.width)};
  shape.overlap = l.kernel.height > l.stride.height || l.kernel.width > l.stride.width;
  shape.partition = !shape.overlap && Total(shape.rows) == in[1] && Total(shape.columns) == in[2];
  return HWY_DYNAMIC_DISPATCH(MakePoolFor)(spec, std::move(shape));
}

}  // namespace adamant::kernels::internal
#endif
