#include <algorithm>
#include <new>
#include <vector>

#include "services/common/base/check.h"
#include "services/common/kernels/native/fully_connected.h"
#include "services/common/kernels/onednn/operation_onednn.h"
#include "services/common/kernels/vector_ops.h"

namespace adamant::kernels::internal {
namespace {

/// As it lies in memory.
struct Matrix {
  const float* values;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t stride;  // from row to row
  bool transposed = false;

  [[nodiscard]] Matrix Transposed() const { return {values, rows, columns, stride, true}; }
};

/// c = a * b + beta * c.
void Multiply(Matrix a, Matrix b, float beta, float* c) {
  const std::int64_t rows = a.transposed ? a.columns : a.rows;
  const std::int64_t depth = a.transposed ? a.rows : a.columns;
  const std::int64_t columns = b.transposed ? b.rows : b.columns;
  const dnnl_status_t status = dnnl_sgemm(a.transposed ? 'T' : 'N',
                                          b.transposed ? 'T' : 'N',
                                          rows,
                                          columns,
                                          depth,
                                          1.0f,
                                          a.values,
                                          a.stride,
                                          b.values,
                                          b.stride,
                                          beta,
                                          c,
                                          columns);
  if (status == dnnl_out_of_memory) {
    throw std::bad_alloc();
  }
  ADAMANT_CHECK(status == dnnl_success, "matrix sizes are positive");
}

/// Plain matrix products on the canonical weights [out, in]: the weights are the largest tensors of
/// a net, and bringing them into another layout every step costs more than it saves. Backward goes
/// through them once, some rows at a time: those rows and their gradient are in the second cache
/// when the errors of the inputs need the one, and the sink both.
class FullyConnected final : public Kernel<float> {
 public:
  explicit FullyConnected(const Spec& spec)
      : batch_(spec.batch),
        in_(spec.inputs[0][0]),
        out_(spec.output[0]),
        piece_rows_(PieceRows(batch_, in_, out_)) {
    PrepareProducts();
    if (spec.training) {
      gradient_.resize(static_cast<std::size_t>(piece_rows_ * in_));
    }
  }

  [[nodiscard]] std::string name() const override { return "oneDNN sgemm"; }

  void Forward(const Operands<float>& o) override {
    for (std::int64_t n = 0; n < batch_; ++n) {
      std::copy_n(o.bias, out_, o.output + n * out_);
    }
    Multiply({o.inputs[0], batch_, in_, in_}, {o.weight, out_, in_, in_, true}, 1.0f, o.output);
  }

  void Backward(const Operands<float>& o) override {
    SumRows(batch_, o.output_error, {o.bias_gradient, static_cast<std::size_t>(out_)});
    const std::int64_t pieces = (out_ + piece_rows_ - 1) / piece_rows_;
    const auto first = static_cast<std::int64_t>(o.sink->start() * static_cast<double>(pieces));
    for (std::int64_t i = 0; i < pieces; ++i) {
      HandOver(o, (first + i) % pieces * piece_rows_, i == 0);
    }
  }

  [[nodiscard]] bool ReadsSharedWeights() const override { return true; }
  [[nodiscard]] bool HandsOverWeightGradient() const override { return true; }

 private:
  /// Few enough that the second cache holds the weights of a piece, their gradient and what the
  /// sink touches; enough that bringing the examples into the product's layout does not show.
  static std::int64_t PieceRows(std::int64_t batch, std::int64_t in, std::int64_t out) {
    constexpr std::int64_t kFloats = 32768;
    return std::min(std::max(kFloats / in, batch), out);
  }

  /// The piece that begins with `row`; the first writes the errors of the inputs, others add.
  void HandOver(const Operands<float>& o, std::int64_t row, bool first) {
    const std::int64_t rows = std::min(piece_rows_, out_ - row);
    const Matrix errors = {o.output_error + row, batch_, rows, out_};
    Multiply(errors.Transposed(), {o.inputs[0], batch_, in_, in_}, 0.0f, gradient_.data());
    if (o.input_errors[0] != nullptr) {
      Multiply(
          errors, {o.weight + row * in_, rows, in_, in_}, first ? 0.0f : 1.0f, o.input_errors[0]);
    }
    o.sink->Take(o.weight_begin + static_cast<std::size_t>(row * in_),
                 {gradient_.data(), static_cast<std::size_t>(rows * in_)});
  }

  const std::int64_t batch_;
  const std::int64_t in_;
  const std::int64_t out_;
  const std::int64_t piece_rows_;
  std::vector<float> gradient_;  // of a piece
};

}  // namespace

std::unique_ptr<Kernel<float>> MakeFullyConnectedOneDnn(const Spec& spec) {
  return std::make_unique<FullyConnected>(spec);
}

}  // namespace adamant::kernels::internal
