#include <algorithm>

#include "services/common/kernels/reference.h"
#include "services/common/kernels/transpose.h"

namespace adamant::kernels::internal {
namespace {

/// Maps of `rows` examples, [channels, plane] each, from one layout to another. Rows from `rows` on
/// are zeros where the target has them side by side with others, and are left alone elsewhere.
template <class T>
class Converter {
 public:
  Converter(std::int64_t batch, std::int64_t channels, std::int64_t plane)
      : batch_(batch), channels_(channels), plane_(plane) {}

  /// Layouts that are the same bytes for these sizes.
  [[nodiscard]] bool Same(MapLayout a, MapLayout b) const {
    const auto innermost = MapLayout::kBatchInnermost;
    return a == b || (a != innermost && b != innermost && (channels_ == 1 || plane_ == 1));
  }

  void Convert(
      MapLayout from_layout, const T* from, MapLayout to_layout, T* to, std::int64_t rows) const {
    if (Same(from_layout, to_layout)) {
      if (from != to) {
        std::copy_n(from, batch_ * channels_ * plane_, to);
      }
    } else if (to_layout == MapLayout::kBatchInnermost) {
      Interleave(from_layout, from, to, rows);
    } else if (from_layout == MapLayout::kBatchInnermost) {
      Separate(from, to_layout, to, rows);
    } else if (from_layout == MapLayout::kChannelsLast) {
      Transpose(batch_, plane_, channels_, from, to);
    } else {
      Transpose(batch_, channels_, plane_, from, to);
    }
  }

 private:
  void Interleave(MapLayout layout, const T* from, T* to, std::int64_t rows) const {
    const std::int64_t features = channels_ * plane_;
    for (std::int64_t row = 0; row < batch_; ++row, from += features) {
      T* const lane = to + row / kLanes * kLanes * features + row % kLanes;
      ForEach(layout, [&](std::int64_t canonical, std::int64_t i) {
        lane[canonical * kLanes] = row < rows ? from[i] : T{0};
      });
    }
  }

  void Separate(const T* from, MapLayout layout, T* to, std::int64_t rows) const {
    const std::int64_t features = channels_ * plane_;
    for (std::int64_t row = 0; row < rows; ++row, to += features) {
      const T* const lane = from + row / kLanes * kLanes * features + row % kLanes;
      ForEach(layout,
              [&](std::int64_t canonical, std::int64_t i) { to[i] = lane[canonical * kLanes]; });
    }
  }

  /// visit(place in channels first, place in `layout`) for all elements of an example.
  template <class Visit>
  void ForEach(MapLayout layout, Visit visit) const {
    const bool last = layout == MapLayout::kChannelsLast;
    const std::int64_t channel_step = last ? 1 : plane_;
    const std::int64_t place_step = last ? channels_ : 1;
    for (std::int64_t c = 0; c < channels_; ++c) {
      for (std::int64_t p = 0; p < plane_; ++p) {
        visit(c * plane_ + p, c * channel_step + p * place_step);
      }
    }
  }

  const std::int64_t batch_;
  const std::int64_t channels_;
  const std::int64_t plane_;
};

/// Changes the layout of maps. Features are maps with the channels first.
template <class T>
class Flatten final : public Kernel<T> {
 public:
  explicit Flatten(const Spec& spec)
      : converter_(spec.batch, spec.inputs[0][0], *ElementCount(spec.output) / spec.inputs[0][0]),
        batch_(spec.batch),
        from_(LayoutOf(spec.inputs[0], spec.input_layout)),
        to_(LayoutOf(spec.output, spec.layout)) {}

  void Forward(const Operands<T>& o) override {
    converter_.Convert(from_, o.inputs[0], to_, o.output, batch_ - o.missing);
  }

  void Backward(const Operands<T>& o) override {
    if (T* errors = o.input_errors[0]) {
      converter_.Convert(to_, o.output_error, from_, errors, batch_ - o.missing);
    }
  }

  [[nodiscard]] InPlace in_place() const override {
    return converter_.Same(from_, to_) ? InPlace::kSameValues : InPlace::kNo;
  }

 private:
  static MapLayout LayoutOf(const Shape& shape, MapLayout layout) {
    return shape.size() == 1 ? MapLayout::kChannelsFirst : layout;
  }

  const Converter<T> converter_;
  const std::int64_t batch_;
  const MapLayout from_;
  const MapLayout to_;
};

}  // namespace

template <class T>
std::unique_ptr<Kernel<T>> MakeFlatten(const Spec& spec) {
  return std::make_unique<Flatten<T>>(spec);
}

template std::unique_ptr<Kernel<float>> MakeFlatten(const Spec&);
template std::unique_ptr<Kernel<double>> MakeFlatten(const Spec&);

}  // namespace adamant::kernels::internal
