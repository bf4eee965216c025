#include <cmath>

#include "services/common/kernels/reference/reference.h"

namespace adamant::kernels::internal {
namespace {

// Each function with its derivative, written in terms of its value y.
struct Relu {
  template <class T>
  static T Value(T x) {
    return x > 0 ? x : T{0};
  }
  template <class T>
  static T Slope(T y) {
    return y > 0 ? T{1} : T{0};
  }
};

struct Sigmoid {
  template <class T>
  static T Value(T x) {
    return 1 / (1 + std::exp(-x));
  }
  template <class T>
  static T Slope(T y) {
    return y * (1 - y);
  }
};

struct Tanh {
  template <class T>
  static T Value(T x) {
    return std::tanh(x);
  }
  template <class T>
  static T Slope(T y) {
    return 1 - y * y;
  }
};

template <class T, class Function>
class Elementwise final : public Kernel<T> {
 public:
  explicit Elementwise(const Spec& spec) : count_(spec.batch * *ElementCount(spec.output)) {}

  void Forward(const Operands<T>& o) override {
    for (std::int64_t i = 0; i < count_; ++i) {
      o.output[i] = Function::Value(o.inputs[0][i]);
    }
  }

  void Backward(const Operands<T>& o) override {
    if (T* errors = o.input_errors[0]) {
      for (std::int64_t i = 0; i < count_; ++i) {
        errors[i] = o.output_error[i] * Function::Slope(o.output[i]);
      }
    }
  }

  [[nodiscard]] InPlace in_place() const override { return InPlace::kOverwrites; }
  [[nodiscard]] bool NeedsInputs() const override { return false; }
  [[nodiscard]] bool NeedsOutput() const override { return true; }

 private:
  const std::int64_t count_;
};

}  // namespace

template <class T>
std::unique_ptr<Kernel<T>> MakeElementwise(const Spec& spec) {
  switch (spec.layer.kind) {
    case model::LayerKind::kSigmoid:
      return std::make_unique<Elementwise<T, Sigmoid>>(spec);
    case model::LayerKind::kTanh:
      return std::make_unique<Elementwise<T, Tanh>>(spec);
    default:
      return std::make_unique<Elementwise<T, Relu>>(spec);
  }
}

template std::unique_ptr<Kernel<float>> MakeElementwise(const Spec&);
template std::unique_ptr<Kernel<double>> MakeElementwise(const Spec&);

}  // namespace adamant::kernels::internal
