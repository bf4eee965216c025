#include <optional>

#include "services/common/kernels/onednn/operation_onednn.h"

namespace adamant::kernels::internal {
namespace {

using dnnl::algorithm;

// Derivatives are taken from the value, so that the layer may run in place.
struct Algorithms {
  algorithm forward;
  algorithm backward;
};

/// Sigmoid and tanh.
Algorithms AlgorithmsOf(model::LayerKind kind) {
  if (kind == model::LayerKind::kSigmoid) {
    return {algorithm::eltwise_logistic, algorithm::eltwise_logistic_use_dst_for_bwd};
  }
  return {algorithm::eltwise_tanh, algorithm::eltwise_tanh_use_dst_for_bwd};
}

class Elementwise final : public Kernel<float> {
 public:
  Elementwise(OneDnn& dnn, const Spec& spec) {
    // One long row: the order of the elements does not matter.
    const dnnl::memory::desc flat({spec.batch * *ElementCount(spec.output)},
                                  dnnl::memory::data_type::f32,
                                  dnnl::memory::format_tag::x);
    const Algorithms algorithms = AlgorithmsOf(spec.layer.kind);
    const dnnl::eltwise_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_inference, algorithms.forward, flat},
        UserScratch(),
        dnn.engine());
    name_ = NameOf(forward);
    Operation& run = forward_.emplace(dnn, dnnl::eltwise_forward(forward), forward);
    run.Input(DNNL_ARG_SRC, flat, flat);
    run.Output(DNNL_ARG_DST, flat, flat);
    if (spec.training) {
      const dnnl::eltwise_forward::primitive_desc hint(
          {dnnl::prop_kind::forward_training, algorithms.backward, flat},
          UserScratch(),
          dnn.engine());
      const dnnl::eltwise_backward::primitive_desc backward(
          {algorithms.backward, flat, flat}, UserScratch(), dnn.engine(), hint);
      Operation& back = backward_.emplace(dnn, dnnl::eltwise_backward(backward), backward);
      back.Input(DNNL_ARG_DST, flat, flat);
      back.Input(DNNL_ARG_DIFF_DST, flat, flat);
      back.Output(DNNL_ARG_DIFF_SRC, flat, flat);
    }
  }

  [[nodiscard]] std::string name() const override { return name_; }

  void Forward(const Operands<float>& o) override { forward_->Run({o.inputs[0], o.output}); }

  void Backward(const Operands<float>& o) override {
    if (o.input_errors[0] != nullptr) {
      backward_->Run({o.output, o.output_error, o.input_errors[0]});
    }
  }

  [[nodiscard]] InPlace in_place() const override { return InPlace::kOverwrites; }
  [[nodiscard]] bool NeedsInputs() const override { return false; }
  [[nodiscard]] bool NeedsOutput() const override { return true; }

 private:
  std::string name_;
  std::optional<Operation> forward_;
  std::optional<Operation> backward_;
};

}  // namespace

std::unique_ptr<Kernel<float>> MakeElementwiseOneDnn(OneDnn& dnn, const Spec& spec) {
  return std::make_unique<Elementwise>(dnn, spec);
}

}  // namespace adamant::kernels::internal
