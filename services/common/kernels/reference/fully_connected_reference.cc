#include <algorithm>

#include "services/common/kernels/reference/reference.h"

namespace adamant::kernels::internal {
namespace {

template <class T>
class FullyConnected final : public Kernel<T> {
 public:
  explicit FullyConnected(const Spec& spec)
      : batch_(spec.batch), in_(spec.inputs[0][0]), out_(spec.output[0]) {}

  void Forward(const Operands<T>& o) override {
    for (std::int64_t n = 0; n < batch_; ++n) {
      for (std::int64_t j = 0; j < out_; ++j) {
        T sum = o.bias[j];
        for (std::int64_t i = 0; i < in_; ++i) {
          sum += o.weight[j * in_ + i] * o.inputs[0][n * in_ + i];
        }
        o.output[n * out_ + j] = sum;
      }
    }
  }

  void Backward(const Operands<T>& o) override {
    std::fill_n(o.weight_gradient, out_ * in_, T{0});
    std::fill_n(o.bias_gradient, out_, T{0});
    T* errors = o.input_errors[0];
    if (errors != nullptr) {
      std::fill_n(errors, batch_ * in_, T{0});
    }
    for (std::int64_t n = 0; n < batch_; ++n) {
      for (std::int64_t j = 0; j < out_; ++j) {
        const T error = o.output_error[n * out_ + j];
        o.bias_gradient[j] += error;
        for (std::int64_t i = 0; i < in_; ++i) {
          o.weight_gradient[j * in_ + i] += error * o.inputs[0][n * in_ + i];
          if (errors != nullptr) {
            errors[n * in_ + i] += error * o.weight[j * in_ + i];
          }
        }
      }
    }
  }

 private:
  const std::int64_t batch_;
  const std::int64_t in_;
  const std::int64_t out_;
};

}  // namespace

template <class T>
std::unique_ptr<Kernel<T>> MakeFullyConnected(const Spec& spec) {
  return std::make_unique<FullyConnected<T>>(spec);
}

template std::unique_ptr<Kernel<float>> MakeFullyConnected(const Spec&);
template std::unique_ptr<Kernel<double>> MakeFullyConnected(const Spec&);

}  // namespace adamant::kernels::internal
