#include <algorithm>

#include "services/common/base/check.h"
#include "services/common/kernels/operation_onednn.h"
#include "services/common/kernels/vector_ops.h"

namespace adamant::kernels::internal {
namespace {

struct Matrix {
  const float* values;
  std::int64_t rows;     // as it lies in memory
  std::int64_t columns;  // likewise
  bool transposed = false;
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
                                          a.columns,
                                          b.values,
                                          b.columns,
                                          beta,
                                          c,
                                          columns);
  ADAMANT_CHECK(status == dnnl_success, "matrix sizes are positive");
}

/// Plain matrix products on the canonical weights [out, in]: the weights are the largest tensors of
/// a net, and bringing them into another layout every step costs more than it saves.
class FullyConnected final : public Kernel<float> {
 public:
  explicit FullyConnected(const Spec& spec)
      : batch_(spec.batch), in_(spec.inputs[0][0]), out_(spec.output[0]) {}

  [[nodiscard]] std::string name() const override { return "oneDNN sgemm"; }

  void Forward(const Operands<float>& o) override {
    for (std::int64_t n = 0; n < batch_; ++n) {
      std::copy_n(o.bias, out_, o.output + n * out_);
    }
    Multiply({o.inputs[0], batch_, in_}, {o.weight, out_, in_, true}, 1.0f, o.output);
  }

  void Backward(const Operands<float>& o) override {
    SumRows(batch_, o.output_error, {o.bias_gradient, static_cast<std::size_t>(out_)});
    Multiply(
        {o.output_error, batch_, out_, true}, {o.inputs[0], batch_, in_}, 0.0f, o.weight_gradient);
    if (o.input_errors[0] != nullptr) {
      Multiply({o.output_error, batch_, out_}, {o.weight, out_, in_}, 0.0f, o.input_errors[0]);
    }
  }

  [[nodiscard]] bool ReadsSharedWeights() const override { return true; }

 private:
  const std::int64_t batch_;
  const std::int64_t in_;
  const std::int64_t out_;
};

}  // namespace

std::unique_ptr<Kernel<float>> MakeFullyConnectedOneDnn(const Spec& spec) {
  return std::make_unique<FullyConnected>(spec);
}

}  // namespace adamant::kernels::internal
