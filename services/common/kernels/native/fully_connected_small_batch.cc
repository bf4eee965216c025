// Own fully connected layers for small batches. The loop orders are in
// fully_connected_small_batch-inl.h.
#include "services/common/kernels/native/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
// NOLINTNEXTLINE(readability-identifier-naming)
#define HWY_TARGET_INCLUDE "services/common/kernels/native/fully_connected_small_batch.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <algorithm>
#include <memory>
#include <vector>

#include "services/common/kernels/isa.h"
#include "services/common/kernels/native/fully_connected.h"
#include "services/common/kernels/native/simd/fully_connected_small_batch-inl.h"
#include "services/common/kernels/vector_ops.h"

HWY_BEFORE_NAMESPACE();
namespace adamant::kernels::internal::HWY_NAMESPACE {

class FullyConnected final : public Kernel<float> {
 public:
  explicit FullyConnected(const Spec& spec)
      : batch_(spec.batch),
        in_(spec.inputs[0][0]),
        out_(spec.output[0]),
        piece_rows_(PieceRows(in_, out_)) {
    if (spec.training) {
      gradient_.resize(static_cast<std::size_t>(piece_rows_ * in_));
    }
  }

  [[nodiscard]] std::string name() const override {
    return "own small batch " + SupportedIsas().front();
  }

  void Forward(const Operands<float>& o) override {
    FullyConnectedForward({batch_, in_, out_, o.weight, o.inputs[0]}, o.bias, o.output);
  }

  void Backward(const Operands<float>& o) override {
    SumRows(batch_, o.output_error, {o.bias_gradient, static_cast<std::size_t>(out_)});
    if (o.input_errors[0] != nullptr) {
      std::fill_n(o.input_errors[0], batch_ * in_, 0.0f);
    }
    const std::int64_t pieces = (out_ + piece_rows_ - 1) / piece_rows_;
    const auto first = static_cast<std::int64_t>(o.sink->start() * static_cast<double>(pieces));
    for (std::int64_t i = 0; i < pieces; ++i) {
      HandOver(o, (first + i) % pieces * piece_rows_);
    }
  }

  [[nodiscard]] bool ReadsSharedWeights() const override { return true; }
  [[nodiscard]] bool HandsOverWeightGradient() const override { return true; }

 private:
  /// Whole tiles that leave room in the first cache for what the sink touches.
  static std::int64_t PieceRows(std::int64_t in, std::int64_t out) {
    constexpr std::int64_t kFloats = 2048;
    const std::int64_t rows = std::max(kFloats / in / kTileRows, std::int64_t{1}) * kTileRows;
    return std::min(rows, out);
  }

  /// The piece that begins with `row`.
  void HandOver(const Operands<float>& o, std::int64_t row) {
    const std::int64_t rows = std::min(piece_rows_, out_ - row);
    FullyConnectedBackward({.rows = {batch_, in_, out_, o.weight + row * in_, o.inputs[0]},
                            .errors = o.output_error + row,
                            .input_errors = o.input_errors[0],
                            .gradient = gradient_.data()},
                           rows);
    o.sink->Take(o.weight_begin + static_cast<std::size_t>(row * in_),
                 {gradient_.data(), static_cast<std::size_t>(rows * in_)});
  }

  const std::int64_t batch_;
  const std::int64_t in_;
  const std::int64_t out_;
  const std::int64_t piece_rows_;
  std::vector<float> gradient_;  // of a piece
};

std::unique_ptr<Kernel<float>> MakeFullyConnected(const Spec& spec) {
  return std::make_unique<FullyConnected>(spec);
}

}  // namespace adamant::kernels::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace adamant::kernels::internal {

HWY_EXPORT(MakeFullyConnected);

std::unique_ptr<Kernel<float>> MakeFullyConnectedSmallBatch(const Spec& spec) {
  return HWY_DYNAMIC_DISPATCH(MakeFullyConnected)(spec);
}

}  // namespace adamant::kernels::internal
#endif
