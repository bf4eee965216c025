#include <algorithm>

#include "services/common/kernels/reference/reference.h"

namespace adamant::kernels::internal {
namespace {

template <class T>
class Add final : public Kernel<T> {
 public:
  explicit Add(const Spec& spec) : count_(spec.batch * *ElementCount(spec.output)) {}

  void Forward(const Operands<T>& o) override {
    std::copy_n(o.inputs[0], count_, o.output);
    for (const T* input : o.inputs.subspan(1)) {
      for (std::int64_t i = 0; i < count_; ++i) {
        o.output[i] += input[i];
      }
    }
  }

  void Backward(const Operands<T>& o) override {
    for (T* errors : o.input_errors) {
      if (errors != nullptr) {
        std::copy_n(o.output_error, count_, errors);
      }
    }
  }

  [[nodiscard]] bool NeedsInputs() const override { return false; }

 private:
  const std::int64_t count_;
};

/// Joins along the channels (or features). In memory the output is rows that are made of one piece
/// of every input in turn.
template <class T>
class Concat final : public Kernel<T> {
 public:
  explicit Concat(const Spec& spec) {
    const bool last = spec.layout == MapLayout::kChannelsLast;
    std::int64_t plane = *ElementCount(spec.output) / spec.output[0];
    rows_ = spec.batch * (last ? plane : 1);
    if (spec.layout == MapLayout::kBatchInnermost && spec.output.size() == 3) {
      rows_ /= kLanes;
      plane *= kLanes;
    }
    for (const Shape& input : spec.inputs) {
      pieces_.push_back(input[0] * (last ? 1 : plane));
      row_ += pieces_.back();
    }
  }

  void Forward(const Operands<T>& o) override {
    std::int64_t begin = 0;
    for (std::size_t k = 0; k < pieces_.size(); begin += pieces_[k++]) {
      for (std::int64_t row = 0; row < rows_; ++row) {
        std::copy_n(o.inputs[k] + row * pieces_[k], pieces_[k], o.output + row * row_ + begin);
      }
    }
  }

  void Backward(const Operands<T>& o) override {
    std::int64_t begin = 0;
    for (std::size_t k = 0; k < pieces_.size(); begin += pieces_[k++]) {
      for (std::int64_t row = 0; o.input_errors[k] != nullptr && row < rows_; ++row) {
        std::copy_n(
            o.output_error + row * row_ + begin, pieces_[k], o.input_errors[k] + row * pieces_[k]);
      }
    }
  }

  [[nodiscard]] bool NeedsInputs() const override { return false; }

 private:
  std::int64_t rows_ = 0;
  std::int64_t row_ = 0;  // elements of a row
  std::vector<std::int64_t> pieces_;
};

}  // namespace

template <class T>
std::unique_ptr<Kernel<T>> MakeAdd(const Spec& spec) {
  return std::make_unique<Add<T>>(spec);
}

template <class T>
std::unique_ptr<Kernel<T>> MakeConcat(const Spec& spec) {
  return std::make_unique<Concat<T>>(spec);
}

template std::unique_ptr<Kernel<float>> MakeAdd(const Spec&);
template std::unique_ptr<Kernel<double>> MakeAdd(const Spec&);
template std::unique_ptr<Kernel<float>> MakeConcat(const Spec&);
template std::unique_ptr<Kernel<double>> MakeConcat(const Spec&);

}  // namespace adamant::kernels::internal
