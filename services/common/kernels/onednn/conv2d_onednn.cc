#include <optional>

#include "services/common/kernels/onednn/operation_onednn.h"

namespace adamant::kernels::internal {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

/// The descriptions of one convolution when its maps lie as `tag`, weights as the library likes.
struct Descriptions {
  Descriptions(const Spec& spec, Tag tag)
      : in(MapDesc(spec.batch, spec.inputs[0], tag)),
        out(MapDesc(spec.batch, spec.output, tag)),
        bias({spec.output[0]}, memory::data_type::f32, Tag::x),
        stride{spec.layer.stride.height, spec.layer.stride.width},
        // The library counts the gaps between taps.
        dilation{spec.layer.dilation.height - 1, spec.layer.dilation.width - 1},
        padding{spec.layer.padding.height, spec.layer.padding.width} {
    const model::Layer& l = spec.layer;
    const std::int64_t inputs = spec.inputs[0][0] / l.groups;
    const memory::dims dims =
        l.groups == 1
            ? memory::dims{l.channels, inputs, l.kernel.height, l.kernel.width}
            : memory::dims{
                  l.groups, l.channels / l.groups, inputs, l.kernel.height, l.kernel.width};
    weights = {dims, memory::data_type::f32, Tag::any};
    canonical = {dims, memory::data_type::f32, l.groups == 1 ? Tag::oihw : Tag::goihw};
  }

  [[nodiscard]] dnnl::convolution_forward::primitive_desc Forward(const dnnl::engine& engine,
                                                                  bool training) const {
    return {{training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
             dnnl::algorithm::convolution_direct,
             in,
             weights,
             bias,
             out,
             stride,
             dilation,
             padding,
             padding},
            UserScratch(),
            engine};
  }

  [[nodiscard]] dnnl::convolution_backward_data::primitive_desc BackwardData(
      const dnnl::engine& engine) const {
    return {
        {dnnl::algorithm::convolution_direct, in, weights, out, stride, dilation, padding, padding},
        UserScratch(),
        engine,
        Forward(engine, true)};
  }

  [[nodiscard]] dnnl::convolution_backward_weights::primitive_desc BackwardWeights(
      const dnnl::engine& engine) const {
    return {{dnnl::algorithm::convolution_direct,
             in,
             weights,
             bias,
             out,
             stride,
             dilation,
             padding,
             padding},
            UserScratch(),
            engine,
            Forward(engine, true)};
  }

  memory::desc in, out, bias, weights, canonical;
  memory::dims stride, dilation, padding;
};

/// describe(descriptions) for the first layout that has a fast implementation. Channels last is
/// ours; channels first goes through matrix multiplication and takes any shape, so it is worth two
/// reorders.
template <class Describe>
auto FirstFast(const Spec& spec, Describe describe) {
  const auto ours = describe(Descriptions(spec, Tag::nhwc));
  if (!IsSlow(ours)) {
    return ours;
  }
  const auto other = describe(Descriptions(spec, Tag::nchw));
  return IsSlow(other) ? ours : other;
}

class Conv2d final : public Kernel<float> {
 public:
  Conv2d(OneDnn& dnn, const Spec& spec) : ours_(spec, Tag::nhwc) {
    MakeForward(dnn, spec);
    if (spec.training) {
      MakeBackward(dnn, spec);
    }
  }

  [[nodiscard]] std::string name() const override { return name_; }

  void Forward(const Operands<float>& o) override {
    forward_->Run({o.inputs[0], o.weight, o.bias, o.output});
  }

  void Backward(const Operands<float>& o) override {
    backward_weights_->Run({o.inputs[0], o.output_error, o.weight_gradient, o.bias_gradient});
    if (o.input_errors[0] != nullptr) {
      backward_data_->Run({o.output_error, o.weight, o.input_errors[0]});
    }
  }

 private:
  void MakeForward(OneDnn& dnn, const Spec& spec) {
    const auto desc = FirstFast(
        spec, [&](const Descriptions& d) { return d.Forward(dnn.engine(), spec.training); });
    name_ = NameOf(desc);
    Operation& run = forward_.emplace(dnn, dnnl::convolution_forward(desc), desc);
    run.Input(DNNL_ARG_SRC, ours_.in, desc.src_desc());
    run.Input(DNNL_ARG_WEIGHTS, ours_.canonical, desc.weights_desc());
    run.Input(DNNL_ARG_BIAS, ours_.bias, ours_.bias);
    run.Output(DNNL_ARG_DST, ours_.out, desc.dst_desc());
  }

  void MakeBackward(OneDnn& dnn, const Spec& spec) {
    const auto weights =
        FirstFast(spec, [&](const Descriptions& d) { return d.BackwardWeights(dnn.engine()); });
    Operation& run_weights =
        backward_weights_.emplace(dnn, dnnl::convolution_backward_weights(weights), weights);
    run_weights.Input(DNNL_ARG_SRC, ours_.in, weights.src_desc());
    run_weights.Input(DNNL_ARG_DIFF_DST, ours_.out, weights.diff_dst_desc());
    run_weights.Output(DNNL_ARG_DIFF_WEIGHTS, ours_.canonical, weights.diff_weights_desc());
    run_weights.Output(DNNL_ARG_DIFF_BIAS, ours_.bias, ours_.bias);

    const auto data =
        FirstFast(spec, [&](const Descriptions& d) { return d.BackwardData(dnn.engine()); });
    Operation& run_data = backward_data_.emplace(dnn, dnnl::convolution_backward_data(data), data);
    run_data.Input(DNNL_ARG_DIFF_DST, ours_.out, data.diff_dst_desc());
    run_data.Input(DNNL_ARG_WEIGHTS, ours_.canonical, data.weights_desc());
    run_data.Output(DNNL_ARG_DIFF_SRC, ours_.in, data.diff_src_desc());
  }

  const Descriptions ours_;
  std::string name_;
  std::optional<Operation> forward_;
  std::optional<Operation> backward_weights_;
  std::optional<Operation> backward_data_;
};

}  // namespace

std::unique_ptr<Kernel<float>> MakeConv2dOneDnn(OneDnn& dnn, const Spec& spec) {
  return std::make_unique<Conv2d>(dnn, spec);
}

}  // namespace adamant::kernels::internal
