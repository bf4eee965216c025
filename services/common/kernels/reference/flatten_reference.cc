#include <algorithm>

#include "services/common/kernels/reference/reference.h"
#include "services/common/kernels/reference/transpose.h"

namespace adamant::kernels::internal {
namespace {

/// Changes the layout of maps. Features are maps with the channels first.
template <class T>
class Flatten final : public Kernel<T> {
 public:
  explicit Flatten(const Spec& spec)
      : batch_(spec.batch),
        channels_(spec.inputs[0][0]),
        plane_(*ElementCount(spec.output) / channels_),
        from_(LayoutOf(spec.inputs[0], spec.input_layout)),
        to_(LayoutOf(spec.output, spec.layout)),
        same_(from_ == to_ || channels_ == 1 || plane_ == 1) {}

  void Forward(const Operands<T>& o) override { Convert(to_, o.inputs[0], o.output); }

  void Backward(const Operands<T>& o) override {
    if (T* errors = o.input_errors[0]) {
      Convert(from_, o.output_error, errors);
    }
  }

  [[nodiscard]] InPlace in_place() const override {
    return same_ ? InPlace::kSameValues : InPlace::kNo;
  }
  [[nodiscard]] bool NeedsInputs() const override { return false; }

 private:
  static MapLayout LayoutOf(const Shape& shape, MapLayout layout) {
    return shape.size() == 1 ? MapLayout::kChannelsFirst : layout;
  }

  void Convert(MapLayout layout, const T* from, T* to) const {
    if (same_) {
      if (from != to) {
        std::copy_n(from, batch_ * channels_ * plane_, to);
      }
    } else if (layout == MapLayout::kChannelsLast) {
      Transpose(batch_, channels_, plane_, from, to);
    } else {
      Transpose(batch_, plane_, channels_, from, to);
    }
  }

  const std::int64_t batch_;
  const std::int64_t channels_;
  const std::int64_t plane_;
  const MapLayout from_;
  const MapLayout to_;
  const bool same_;
};

}  // namespace

template <class T>
std::unique_ptr<Kernel<T>> MakeFlatten(const Spec& spec) {
  return std::make_unique<Flatten<T>>(spec);
}

template std::unique_ptr<Kernel<float>> MakeFlatten(const Spec&);
template std::unique_ptr<Kernel<double>> MakeFlatten(const Spec&);

}  // namespace adamant::kernels::internal
