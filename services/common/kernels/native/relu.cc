// Own ReLUs: one loop over all elements.
#include "services/common/kernels/native/relu.h"

#include "services/common/kernels/native/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
// NOLINTNEXTLINE(readability-identifier-naming)
#define HWY_TARGET_INCLUDE "services/common/kernels/native/relu.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <memory>

#include "services/common/kernels/isa.h"
#include "services/common/kernels/native/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace adamant::kernels::internal::HWY_NAMESPACE {

/// to[i] = from[i] where by[i] > 0, else 0. `to` may be the same as the others.
inline void KeepPositive(std::int64_t count, const float* by, const float* from, float* to) {
  const Floats d;
  std::int64_t i = 0;
  for (; i + kVector <= count; i += kVector) {
    const auto positive = hn::Gt(hn::LoadU(d, by + i), hn::Zero(d));
    hn::StoreU(hn::IfThenElseZero(positive, hn::LoadU(d, from + i)), d, to + i);
  }
  if (i < count) {
    const std::int64_t left = count - i;
    const auto positive = hn::Gt(LoadFirst(left, by + i), hn::Zero(d));
    StoreFirst(left, hn::IfThenElseZero(positive, LoadFirst(left, from + i)), to + i);
  }
}

class Relu final : public Kernel<float> {
 public:
  explicit Relu(const Spec& spec) : count_(spec.batch * *ElementCount(spec.output)) {}

  [[nodiscard]] std::string name() const override { return "own " + SupportedIsas().front(); }

  void Forward(const Operands<float>& o) override {
    KeepPositive(count_, o.inputs[0], o.inputs[0], o.output);
  }

  void Backward(const Operands<float>& o) override {
    if (float* const errors = o.input_errors[0]) {
      KeepPositive(count_, o.output, o.output_error, errors);
    }
  }

  [[nodiscard]] InPlace in_place() const override { return InPlace::kOverwrites; }
  [[nodiscard]] bool NeedsInputs() const override { return false; }
  [[nodiscard]] bool NeedsOutput() const override { return true; }

 private:
  const std::int64_t count_;
};

std::unique_ptr<Kernel<float>> MakeReluOf(const Spec& spec) { return std::make_unique<Relu>(spec); }

}  // namespace adamant::kernels::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace adamant::kernels::internal {

HWY_EXPORT(MakeReluOf);

std::unique_ptr<Kernel<float>> MakeRelu(const Spec& spec) {
  return HWY_DYNAMIC_DISPATCH(MakeReluOf)(spec);
}

}  // namespace adamant::kernels::internal
#endif
