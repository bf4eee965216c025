#include <algorithm>

#include "services/common/base/check.h"
#include "services/common/kernels/operation_onednn.h"
#include "services/common/kernels/vector_ops.h"

namespace adamant::kernels::internal {
namespace {

struct Matrix {
  const float* values;
  bool transposed;
  std::int64_t stride;  // elements from one row to the next, as it lies in memory
};

/// c = a * b + beta * c, with c of rows x columns and the inner extent `depth`.
void Multiply(std::int64_t rows,
              std::int64_t columns,
              std::int64_t depth,
              Matrix a,
              Matrix b,
              float beta,
              float* c) {
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
  ADAMANT_CHECK(status == dnnl_success, "matrix sizes are positive");
}

/// Plain matrix products on the canonical weights [out, in]: the weights are the largest tensors of
/// a net, and bringing them into another layout every step costs more than it saves.
class FullyConnected final : public Kernel<float> {
 public:
  explicit FullyConnected(const Spec& spec)
      : batch_(spec.batch), in_(spec.inputs[0][0]), out_(spec.output[0]) {}

  void Forward(const Operands<float>& o) override {
    for (std::int64_t n = 0; n < batch_; ++n) {
      std::copy_n(o.bias, out_, o.output + n * out_);
    }
    Multiply(batch_, out_, in_, {o.inputs[0], false, in_}, {o.weight, true, in_}, 1.0f, o.output);
  }

  void Backward(const Operands<float>& o) override {
    const std::int64_t out = out_;
    SumRows(batch_, o.output_error, {o.bias_gradient, static_cast<std::size_t>(out)});
    Multiply(out,
             in_,
             batch_,
             {o.output_error, true, out},
             {o.inputs[0], false, in_},
             0.0f,
             o.weight_gradient);
    if (o.input_errors[0] != nullptr) {
      Multiply(batch_,
               in_,
               out,
               {o.output_error, false, out},
               {o.weight, false, in_},
               0.0f,
               o.input_errors[0]);
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
