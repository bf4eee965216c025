#include <algorithm>
#include <cmath>
#include <limits>

#include "services/common/kernels/reference/reference.h"
#include "services/common/kernels/reference/window.h"

namespace adamant::kernels::internal {
namespace {

/// Calls visit(input plane, output plane) as offsets, for every example and channel, then
/// place(row, column, output) within.
template <class Visit>
void ForEachWindow(const Window& w, Visit visit) {
  for (std::int64_t map = 0; map < w.batch * w.out_channels; ++map) {
    for (std::int64_t row = 0; row < w.out.height; ++row) {
      for (std::int64_t column = 0; column < w.out.width; ++column) {
        visit(map * w.in_plane(), row, column, map * w.out_plane() + row * w.out.width + column);
      }
    }
  }
}

/// The gradient of a window goes to its first largest input.
template <class T>
class MaxPool final : public Kernel<T> {
 public:
  explicit MaxPool(const Spec& spec) : w_(spec) {
    if (spec.training) {
      chosen_.resize(w_.batch * w_.out_channels * w_.out_plane());
    }
  }

  void Forward(const Operands<T>& o) override {
    ForEachWindow(w_,
                  [&](std::int64_t plane, std::int64_t row, std::int64_t column, std::int64_t at) {
                    const T* x = o.inputs[0] + plane;
                    std::int64_t best = -1;
                    w_.ForEach(row, column, [&](std::int64_t, std::int64_t i) {
                      if (best < 0 || x[i] > x[best] || std::isnan(x[i])) {
                        best = i;
                      }
                    });
                    o.output[at] = x[best];
                    if (!chosen_.empty()) {
                      chosen_[at] = plane + best;
                    }
                  });
  }

  void Backward(const Operands<T>& o) override {
    if (T* errors = o.input_errors[0]) {
      std::fill_n(errors, w_.batch * w_.in_channels * w_.in_plane(), T{0});
      for (std::size_t at = 0; at < chosen_.size(); ++at) {
        errors[chosen_[at]] += o.output_error[at];
      }
    }
  }

  [[nodiscard]] bool NeedsInputs() const override { return false; }

 private:
  const Window w_;
  std::vector<std::int64_t> chosen_;  // by output: the input it came from
};

/// Divides by the whole window, padding included.
template <class T>
class AveragePool final : public Kernel<T> {
 public:
  explicit AveragePool(const Spec& spec) : w_(spec) {}

  void Forward(const Operands<T>& o) override {
    ForEachWindow(
        w_, [&](std::int64_t plane, std::int64_t row, std::int64_t column, std::int64_t at) {
          T sum = 0;
          w_.ForEach(
              row, column, [&](std::int64_t, std::int64_t i) { sum += o.inputs[0][plane + i]; });
          o.output[at] = sum / static_cast<T>(w_.kernel_plane());
        });
  }

  void Backward(const Operands<T>& o) override {
    T* errors = o.input_errors[0];
    if (errors == nullptr) {
      return;
    }
    std::fill_n(errors, w_.batch * w_.in_channels * w_.in_plane(), T{0});
    ForEachWindow(
        w_, [&](std::int64_t plane, std::int64_t row, std::int64_t column, std::int64_t at) {
          const T share = o.output_error[at] / static_cast<T>(w_.kernel_plane());
          w_.ForEach(
              row, column, [&](std::int64_t, std::int64_t i) { errors[plane + i] += share; });
        });
  }

  [[nodiscard]] bool NeedsInputs() const override { return false; }

 private:
  const Window w_;
};

}  // namespace

template <class T>
std::unique_ptr<Kernel<T>> MakePool(const Spec& spec) {
  if (spec.layer.kind == model::LayerKind::kMaxPool) {
    return std::make_unique<MaxPool<T>>(spec);
  }
  return std::make_unique<AveragePool<T>>(spec);
}

template std::unique_ptr<Kernel<float>> MakePool(const Spec&);
template std::unique_ptr<Kernel<double>> MakePool(const Spec&);

}  // namespace adamant::kernels::internal
