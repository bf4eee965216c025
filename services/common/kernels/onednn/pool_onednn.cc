#include <optional>

#include "services/common/kernels/onednn/operation_onednn.h"

namespace adamant::kernels::internal {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

/// Forward and backward share what the largest inputs were (the workspace), so they lie alike.
struct Descriptions {
  Descriptions(const dnnl::engine& engine, const Spec& spec, Tag tag)
      : in(MapDesc(spec.batch, spec.inputs[0], tag)), out(MapDesc(spec.batch, spec.output, tag)) {
    const model::Layer& l = spec.layer;
    // Average pools divide by the whole window.
    const auto algorithm = l.kind == model::LayerKind::kMaxPool
                               ? dnnl::algorithm::pooling_max
                               : dnnl::algorithm::pooling_avg_include_padding;
    const memory::dims kernel = {l.kernel.height, l.kernel.width};
    const memory::dims stride = {l.stride.height, l.stride.width};
    const memory::dims padding = {l.padding.height, l.padding.width};
    const auto kind =
        spec.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    forward = {{kind, algorithm, in, out, stride, kernel, padding, padding}, UserScratch(), engine};
    if (spec.training) {
      backward = {
          {algorithm, in, out, stride, kernel, padding, padding}, UserScratch(), engine, forward};
    }
  }

  [[nodiscard]] bool Slow() const { return IsSlow(forward) || (backward && IsSlow(backward)); }

  memory::desc in, out;
  dnnl::pooling_forward::primitive_desc forward;
  dnnl::pooling_backward::primitive_desc backward;  // empty unless training
};

class Pool final : public Kernel<float> {
 public:
  Pool(OneDnn& dnn, const Spec& spec) {
    const Descriptions ours(dnn.engine(), spec, Tag::nhwc);
    const Descriptions plain(dnn.engine(), spec, Tag::nchw);
    const Descriptions& best = ours.Slow() && !plain.Slow() ? plain : ours;
    name_ = NameOf(best.forward);
    Operation& run = forward_.emplace(dnn, dnnl::pooling_forward(best.forward), best.forward);
    run.Input(DNNL_ARG_SRC, ours.in, best.in);
    run.Output(DNNL_ARG_DST, ours.out, best.out);
    const memory::desc workspace = best.forward.workspace_desc();
    has_workspace_ = spec.training && workspace.get_size() > 0;
    if (has_workspace_) {
      workspace_ = memory(workspace, dnn.engine());
      run.Output(DNNL_ARG_WORKSPACE, workspace, workspace);
    }
    if (spec.training) {
      Operation& back =
          backward_.emplace(dnn, dnnl::pooling_backward(best.backward), best.backward);
      back.Input(DNNL_ARG_DIFF_DST, ours.out, best.out);
      back.Output(DNNL_ARG_DIFF_SRC, ours.in, best.in);
      if (has_workspace_) {
        back.Input(DNNL_ARG_WORKSPACE, workspace, workspace);
      }
    }
  }

  [[nodiscard]] std::string name() const override { return name_; }

  void Forward(const Operands<float>& o) override {
    if (has_workspace_) {
      forward_->Run({o.inputs[0], o.output, workspace_.get_data_handle()});
    } else {
      forward_->Run({o.inputs[0], o.output});
    }
  }

  void Backward(const Operands<float>& o) override {
    if (o.input_errors[0] == nullptr) {
      return;
    }
    if (has_workspace_) {
      backward_->Run({o.output_error, o.input_errors[0], workspace_.get_data_handle()});
    } else {
      backward_->Run({o.output_error, o.input_errors[0]});
    }
  }

  [[nodiscard]] bool NeedsInputs() const override { return false; }

 private:
  std::string name_;
  bool has_workspace_ = false;
  memory workspace_;
  std::optional<Operation> forward_;
  std::optional<Operation> backward_;
};

}  // namespace

std::unique_ptr<Kernel<float>> MakePoolOneDnn(OneDnn& dnn, const Spec& spec) {
  return std::make_unique<Pool>(dnn, spec);
}

}  // namespace adamant::kernels::internal
