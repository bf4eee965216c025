#include <algorithm>

#include "services/common/kernels/isa.h"
#include "services/common/kernels/native/batch_innermost.h"
#include "services/common/kernels/native/lanes.h"

namespace adamant::kernels::internal {
namespace {

/// Changes between the batch innermost and another layout; features are maps with the channels
/// first.
class Flatten final : public Kernel<float> {
 public:
  explicit Flatten(const Spec& spec)
      : batch_(spec.batch),
        channels_(spec.inputs[0][0]),
        plane_(*ElementCount(spec.output) / channels_),
        interleaves_(spec.output.size() == 3 && spec.layout == MapLayout::kBatchInnermost),
        other_(interleaves_              ? LayoutOf(spec.inputs[0], spec.input_layout)
               : spec.output.size() == 1 ? MapLayout::kChannelsFirst
                                         : spec.layout) {}

  [[nodiscard]] std::string name() const override {
    return "own transposition " + SupportedIsas().front();
  }

  void Forward(const Operands<float>& o) override {
    Convert(interleaves_, o.missing, o.inputs[0], o.output);
  }

  void Backward(const Operands<float>& o) override {
    if (float* errors = o.input_errors[0]) {
      Convert(!interleaves_, o.missing, o.output_error, errors);
    }
  }

  [[nodiscard]] bool NeedsInputs() const override { return false; }

 private:
  static MapLayout LayoutOf(const Shape& shape, MapLayout layout) {
    return shape.size() == 1 ? MapLayout::kChannelsFirst : layout;
  }

  void Convert(bool interleave, std::int64_t missing, const float* from, float* to) const {
    const LaneShape shape = {batch_, channels_, plane_, batch_ - missing};
    interleave ? ToBatchInnermost(shape, other_, from, to)
               : FromBatchInnermost(shape, other_, from, to);
  }

  const std::int64_t batch_;
  const std::int64_t channels_;
  const std::int64_t plane_;
  const bool interleaves_;
  const MapLayout other_;
};

}  // namespace

std::unique_ptr<Kernel<float>> MakeFlattenBatchInnermost(const Spec& spec) {
  return std::make_unique<Flatten>(spec);
}

}  // namespace adamant::kernels::internal
