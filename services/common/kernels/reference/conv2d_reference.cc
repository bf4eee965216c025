#include <algorithm>

#include "services/common/kernels/reference/reference.h"
#include "services/common/kernels/reference/window.h"

namespace adamant::kernels::internal {
namespace {

template <class T>
class Conv2d final : public Kernel<T> {
 public:
  explicit Conv2d(const Spec& spec) : w_(spec) {}

  void Forward(const Operands<T>& o) override {
    ForEachPair(
        [&](std::int64_t n, std::int64_t out, std::int64_t in, const T* weights) {
          const T* x = o.inputs[0] + (n * w_.in_channels + in) * w_.in_plane();
          T* y = o.output + (n * w_.out_channels + out) * w_.out_plane();
          if (in == FirstInput(out)) {
            std::fill_n(y, w_.out_plane(), o.bias[out]);
          }
          ForEachOutput([&](std::int64_t row, std::int64_t column, std::int64_t at) {
            T sum = 0;
            w_.ForEach(
                row, column, [&](std::int64_t k, std::int64_t i) { sum += weights[k] * x[i]; });
            y[at] += sum;
          });
        },
        o.weight);
  }

  void Backward(const Operands<T>& o) override {
    BackwardParameters(o);
    if (T* errors = o.input_errors[0]) {
      std::fill_n(errors, w_.batch * w_.in_channels * w_.in_plane(), T{0});
      ForEachPair(
          [&](std::int64_t n, std::int64_t out, std::int64_t in, const T* weights) {
            T* dx = errors + (n * w_.in_channels + in) * w_.in_plane();
            const T* dy = o.output_error + (n * w_.out_channels + out) * w_.out_plane();
            ForEachOutput([&](std::int64_t row, std::int64_t column, std::int64_t at) {
              w_.ForEach(row, column, [&](std::int64_t k, std::int64_t i) {
                dx[i] += weights[k] * dy[at];
              });
            });
          },
          o.weight);
    }
  }

 private:
  void BackwardParameters(const Operands<T>& o) const {
    const std::int64_t weights = w_.out_channels * InputsPerGroup() * w_.kernel_plane();
    std::fill_n(o.weight_gradient, weights, T{0});
    std::fill_n(o.bias_gradient, w_.out_channels, T{0});
    ForEachPair(
        [&](std::int64_t n, std::int64_t out, std::int64_t in, T* gradients) {
          const T* x = o.inputs[0] + (n * w_.in_channels + in) * w_.in_plane();
          const T* dy = o.output_error + (n * w_.out_channels + out) * w_.out_plane();
          ForEachOutput([&](std::int64_t row, std::int64_t column, std::int64_t at) {
            if (in == FirstInput(out)) {
              o.bias_gradient[out] += dy[at];
            }
            w_.ForEach(row, column, [&](std::int64_t k, std::int64_t i) {
              gradients[k] += dy[at] * x[i];
            });
          });
        },
        o.weight_gradient);
  }

  [[nodiscard]] std::int64_t InputsPerGroup() const { return w_.in_channels / w_.groups; }

  /// The first input channel of the group that `out` belongs to.
  [[nodiscard]] std::int64_t FirstInput(std::int64_t out) const {
    return out / (w_.out_channels / w_.groups) * InputsPerGroup();
  }

  /// Calls visit(example, output channel, input channel, their kernel) for every pair of channels
  /// that is connected; `weights` is the whole tensor.
  template <class Visit, class W>
  void ForEachPair(Visit visit, W* weights) const {
    for (std::int64_t n = 0; n < w_.batch; ++n) {
      for (std::int64_t out = 0; out < w_.out_channels; ++out) {
        for (std::int64_t in = 0; in < InputsPerGroup(); ++in) {
          visit(n,
                out,
                FirstInput(out) + in,
                weights + (out * InputsPerGroup() + in) * w_.kernel_plane());
        }
      }
    }
  }

  template <class Visit>
  void ForEachOutput(Visit visit) const {
    for (std::int64_t row = 0; row < w_.out.height; ++row) {
      for (std::int64_t column = 0; column < w_.out.width; ++column) {
        visit(row, column, row * w_.out.width + column);
      }
    }
  }

  const Window w_;
};

}  // namespace

template <class T>
std::unique_ptr<Kernel<T>> MakeConv2d(const Spec& spec) {
  return std::make_unique<Conv2d<T>>(spec);
}

template std::unique_ptr<Kernel<float>> MakeConv2d(const Spec&);
template std::unique_ptr<Kernel<double>> MakeConv2d(const Spec&);

}  // namespace adamant::kernels::internal
