// Own pools. A pixel of a map holds a block of examples, or all channels. Loops, outermost first:
// map (block of examples and channel, or example); row and column of the output; part of the pixel
// that a vector holds; row and column of the window, the latter two unrolled for windows of 2x2 and
// 3x3, where these lie wholly on the input. In training a max pool keeps where in its window each
// output came from, one byte, so that nobody needs the inputs after it.
#include "services/common/kernels/native/pool.h"

#include "services/common/kernels/native/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
// NOLINTNEXTLINE(readability-identifier-naming)
#define HWY_TARGET_INCLUDE "services/common/kernels/native/pool.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/check.h"
#include "services/common/kernels/isa.h"
#include "services/common/kernels/native/simd/simd-inl.h"

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
  std::int64_t window = 0;  // area, padding included
  std::int64_t column_stride = 1;
  std::vector<PoolRange> rows;     // by row of the output
  std::vector<PoolRange> columns;  // by column
  bool overlap = false;            // an input may belong to several windows
  bool partition = false;          // each input belongs to exactly one
};

}  // namespace adamant::kernels::internal
#endif

HWY_BEFORE_NAMESPACE();
namespace adamant::kernels::internal::HWY_NAMESPACE {

/// The part of an output's window that a vector holds, as far as it lies on the input. Of size H x
/// W, or any if these are 0.
template <int H, int W>
struct PoolWindow {
  std::int64_t offset;  // of the first input in its plane, in floats
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t row_step;
  std::int64_t column_step;

  /// Calls `visit(place, offset)` for each input, row by row: the first has place 0.
  template <class Visit>
  HWY_INLINE void ForInputs(const Visit& visit) const {
    const std::int64_t height = H > 0 ? H : rows;
    const std::int64_t width = W > 0 ? W : columns;
    HWY_UNROLL(3)
    for (std::int64_t i = 0; i < height; ++i) {
      HWY_UNROLL(3)
      for (std::int64_t j = 0; j < width; ++j) {
        visit(i * width + j, offset + i * row_step + j * column_step);
      }
    }
  }
};

class Pool : public Kernel<float> {
 public:
  explicit Pool(PoolShape shape) : shape_(std::move(shape)) {}

  [[nodiscard]] std::string name() const final {
    return "own " + shape_.name + " " + SupportedIsas().front();
  }

  void Forward(const Operands<float>& o) final {
    for (std::int64_t map = 0; map < shape_.maps; ++map) {
      ForwardMap(o.inputs[0] + map * InPlane(), o.output + map * OutPlane(), KeptOf(o, map));
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
      BackwardMap(o.output_error + map * OutPlane(), KeptOf(o, map), errors);
    }
  }

  [[nodiscard]] bool NeedsInputs() const final { return false; }

 protected:
  /// `kept`: a byte for each output, to Backward; may be null. Up to a vector more is overwritten.
  virtual void ForwardMap(const float* input, float* output, std::uint8_t* kept) const = 0;

  /// `input_error` is zeros unless windows partition the map.
  virtual void BackwardMap(const float* output_error,
                           const std::uint8_t* kept,
                           float* input_error) const = 0;

  /// Bytes of `kept` of all maps.
  [[nodiscard]] std::int64_t BytePerOutput() const { return shape_.maps * OutPlane() + kVector; }

  [[nodiscard]] const PoolShape& shape() const { return shape_; }

  /// Calls `visit(window, lanes)` for the windows of a map, and in each for the floats of a pixel
  /// that a vector holds: `lanes` of them, a constant but for the last. Windows that wholly lie on
  /// the input are known to be H x W.
  template <int H, int W, class Visit>
  HWY_INLINE void ForParts(const Visit& visit) const {
    const std::int64_t pixel = shape_.pixel;  // copies: stores may change members
    const std::int64_t row_step = shape_.in_width * pixel;
    const std::int64_t step = shape_.column_stride * pixel;
    const PoolRange* const columns = shape_.columns.data();
    const auto count = static_cast<std::int64_t>(shape_.columns.size());
    const PoolRange whole = WholeColumns(W);
    for (const PoolRange row : shape_.rows) {
      const auto clipped = [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
        for (std::int64_t c = begin; c < end; ++c) {
          const std::int64_t at = row.first * row_step + columns[c].first * pixel;
          ForPixel<0, 0>({at, row.count, columns[c].count, row_step, pixel}, pixel, visit);
        }
      };
      if (H == 0 || row.count != H || whole.count == 0) {
        clipped(0, count);
        continue;
      }
      clipped(0, whole.first);
      std::int64_t at = row.first * row_step + columns[whole.first].first * pixel;
      for (std::int64_t i = 0; i < whole.count; ++i, at += step) {
        ForPixel<H, W>({at, H, W, row_step, pixel}, pixel, visit);
      }
      clipped(whole.first + whole.count, count);
    }
  }

 private:
  template <int H, int W, class Visit>
  HWY_INLINE static void ForPixel(PoolWindow<H, W> window, std::int64_t pixel, const Visit& visit) {
    std::int64_t left = pixel;
    for (; left >= kVector; left -= kVector, window.offset += kVector) {
      visit(window, kVector);
    }
    if (left > 0) {
      visit(window, left);
    }
  }

  /// Of the output, those whose windows lie on `width` columns of the input.
  [[nodiscard]] PoolRange WholeColumns(std::int64_t width) const {
    const auto is_whole = [&](const PoolRange& column) { return column.count == width; };
    const auto& columns = shape_.columns;
    const auto first = std::find_if(columns.begin(), columns.end(), is_whole);
    return {first - columns.begin(), std::find_if_not(first, columns.end(), is_whole) - first};
  }

  [[nodiscard]] std::int64_t InPlane() const { return shape_.in_plane * shape_.pixel; }
  [[nodiscard]] std::int64_t OutPlane() const {
    return static_cast<std::int64_t>(shape_.rows.size() * shape_.columns.size()) * shape_.pixel;
  }

  [[nodiscard]] std::uint8_t* KeptOf(const Operands<float>& o, std::int64_t map) const {
    return o.kept == nullptr ? nullptr : o.kept + map * OutPlane();
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

/// Writes, or adds where windows overlap.
HWY_INLINE void Give(std::int64_t lanes, Vector value, bool add, float* to) {
  Store(lanes, add ? hn::Add(Load(lanes, to), value) : value, to);
}

/// Windows of H x W, or of any size if these are 0; those at a border may see less. The gradient
/// goes to the first largest input, or the last that is no number.
template <int H, int W>
class MaxPool final : public Pool {
 public:
  MaxPool(PoolShape shape, bool training) : Pool(std::move(shape)), training_(training) {}

  [[nodiscard]] std::int64_t KeptBytes() const override { return training_ ? BytePerOutput() : 0; }

 protected:
  void ForwardMap(const float* input, float* output, std::uint8_t* kept) const override {
    const bool relu = shape().relu;
    ForParts<H, W>([&](const auto& window, std::int64_t lanes) HWY_ATTR {
      const Floats d;
      const Ints ints;
      auto value = Load(lanes, input + window.offset);  // it is, until a larger one comes
      auto place = hn::Zero(ints);
      window.ForInputs([&](std::int64_t i, std::int64_t offset) HWY_ATTR {
        if (i > 0) {
          const Vector x = Load(lanes, input + offset);
          const auto larger = hn::Or(hn::Gt(x, value), hn::IsNaN(x));
          value = hn::IfThenElse(larger, x, value);
          place = hn::IfThenElse(hn::RebindMask(ints, larger), PlaceOf(i), place);
        }
      });
      if (relu) {
        const auto positive = hn::Gt(value, hn::Zero(d));
        value = hn::IfThenElseZero(positive, value);
        place = hn::IfThenElse(hn::RebindMask(ints, positive), place, PlaceOf(kNowhere));
      }
      Store(lanes, value, output);
      output += lanes;
      if (kept != nullptr) {
        hn::StoreU(hn::DemoteTo(Bytes(), place), Bytes(), kept);
        kept += lanes;
      }
    });
  }

  void BackwardMap(const float* output_error,
                   const std::uint8_t* kept,
                   float* input_error) const override {
    const bool add = shape().overlap;
    ForParts<H, W>([&](const auto& window, std::int64_t lanes) HWY_ATTR {
      const Floats d;
      const Ints ints;
      const Vector error = Load(lanes, output_error);
      const auto place = hn::PromoteTo(ints, hn::LoadU(Bytes(), kept));
      output_error += lanes;
      kept += lanes;
      window.ForInputs([&](std::int64_t i, std::int64_t offset) HWY_ATTR {
        const auto from_here = hn::RebindMask(d, hn::Eq(place, PlaceOf(i)));
        Give(lanes, hn::IfThenElseZero(from_here, error), add, input_error + offset);
      });
    });
  }

 private:
  using Ints = hn::RebindToSigned<Floats>;
  using Bytes = hn::Rebind<std::uint8_t, Floats>;

  /// The place of an output that a ReLU made 0.
  static constexpr std::int64_t kNowhere = kLargestMaxPool;

  HWY_INLINE static hn::Vec<Ints> PlaceOf(std::int64_t i) {
    return hn::Set(Ints(), static_cast<std::int32_t>(i));
  }

  const bool training_;
};

/// As MaxPool. Divides by the whole window, padding included.
template <int H, int W>
class AveragePool final : public Pool {
 public:
  using Pool::Pool;

 protected:
  void ForwardMap(const float* input, float* output, std::uint8_t* /*kept*/) const override {
    const auto area = static_cast<float>(shape().window);
    ForParts<H, W>([&](const auto& window, std::int64_t lanes) HWY_ATTR {
      const Floats d;
      Vector sum = hn::Zero(d);
      window.ForInputs([&](std::int64_t /*i*/, std::int64_t offset)
                           HWY_ATTR { sum = hn::Add(sum, Load(lanes, input + offset)); });
      Store(lanes, hn::Div(sum, hn::Set(d, area)), output);
      output += lanes;
    });
  }

  void BackwardMap(const float* output_error,
                   const std::uint8_t* /*kept*/,
                   float* input_error) const override {
    const auto area = static_cast<float>(shape().window);
    const bool add = shape().overlap;
    ForParts<H, W>([&](const auto& window, std::int64_t lanes) HWY_ATTR {
      const Floats d;
      const Vector share = hn::Div(Load(lanes, output_error), hn::Set(d, area));
      window.ForInputs([&](std::int64_t /*i*/, std::int64_t offset)
                           HWY_ATTR { Give(lanes, share, add, input_error + offset); });
      output_error += lanes;
    });
  }
};

template <int H, int W>
std::unique_ptr<Kernel<float>> MakePoolOf(const Spec& spec, PoolShape shape) {
  if (spec.layer.kind == model::LayerKind::kMaxPool) {
    return std::make_unique<MaxPool<H, W>>(std::move(shape), spec.training);
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

bool ServesPool(const Spec& spec) {
  const model::Extent2d& kernel = spec.layer.kernel;
  return !spec.training || spec.layer.kind != model::LayerKind::kMaxPool ||
         kernel.height <= kLargestMaxPool / kernel.width;
}

std::unique_ptr<Kernel<float>> MakePool(const Spec& spec) {
  const bool innermost = spec.layout == MapLayout::kBatchInnermost;
  ADAMANT_CHECK(innermost ? spec.batch % kLanes == 0 : spec.layout == MapLayout::kChannelsLast,
                "whole blocks of examples, or the channels last");
  ADAMANT_CHECK(ServesPool(spec), "windows whose places fit into a byte");
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
      .column_stride = l.stride.width,
      .rows = RangesOf(in[1], out[1], l.kernel.height, l.stride.height, l.padding.height),
      .columns = RangesOf(in[2], out[2], l.kernel.width, l.stride.width, l.padding.width)};
  shape.overlap = l.kernel.height > l.stride.height || l.kernel.width > l.stride.width;
  shape.partition = !shape.overlap && Total(shape.rows) == in[1] && Total(shape.columns) == in[2];
  return HWY_DYNAMIC_DISPATCH(MakePoolFor)(spec, std::move(shape));
}

}  // namespace adamant::kernels::internal
#endif
