#include <new>
#include <string>

#include "services/common/base/status_macros.h"
#include "services/common/kernels/backend.h"
#include "services/common/kernels/isa.h"
#include "services/common/kernels/native/batch_innermost.h"
#include "services/common/kernels/native/channels_last.h"
#include "services/common/kernels/native/cost.h"
#include "services/common/kernels/native/fully_connected.h"
#include "services/common/kernels/native/pool.h"
#include "services/common/kernels/native/relu.h"
#include "services/common/kernels/onednn/operation_onednn.h"
#include "services/common/kernels/reference/reference.h"
#include "services/common/kernels/thread_mode.h"

namespace adamant::kernels {
namespace {

class OneDnnBackend final : public Backend {
 public:
  [[nodiscard]] std::optional<double> Cost(const Spec& spec) const override {
    return internal::EstimateCost(spec);
  }

  absl::StatusOr<std::unique_ptr<Kernel<float>>> Make(const Spec& spec) override {
    const ThreadMode alone;  // primitives remember the team they were made for
    internal::RequireRoomForCode();
    try {
      return Choose(spec);
    } catch (const dnnl::error& error) {
      if (error.status == dnnl_out_of_memory) {
        throw std::bad_alloc();
      }
      return absl::InternalError(spec.layer.name + ": oneDNN has no kernel for " +
                                 ToString(spec.inputs[0]) + " -> " + ToString(spec.output) +
                                 " at batch " + std::to_string(spec.batch) + ": " + error.what());
    }
  }

 private:
  std::unique_ptr<Kernel<float>> Choose(const Spec& spec) {
    using model::LayerKind;
    const bool innermost = spec.layout == MapLayout::kBatchInnermost;
    switch (spec.layer.kind) {
      case LayerKind::kConv2d:
        return innermost                               ? internal::MakeConv2dBatchInnermost(spec)
               : internal::OwnChannelsLastIsBest(spec) ? internal::MakeConv2dChannelsLast(spec)
                                                       : internal::MakeConv2dOneDnn(dnn_, spec);
      case LayerKind::kMaxPool:
      case LayerKind::kAveragePool:
        return internal::OwnPoolIsBest(spec) ? internal::MakePool(spec)
                                             : internal::MakePoolOneDnn(dnn_, spec);
      case LayerKind::kFlatten:
        if (innermost || spec.input_layout == MapLayout::kBatchInnermost) {
          return internal::MakeFlattenBatchInnermost(spec);
        }
        break;
      case LayerKind::kFullyConnected:
        return spec.batch <= internal::kSmallBatch ? internal::MakeFullyConnectedSmallBatch(spec)
                                                   : internal::MakeFullyConnectedOneDnn(spec);
      case LayerKind::kRelu:
        return internal::MakeRelu(spec);
      case LayerKind::kSigmoid:
      case LayerKind::kTanh:
        return internal::MakeElementwiseOneDnn(dnn_, spec);
      case LayerKind::kDropout:
      case LayerKind::kAdd:
      case LayerKind::kConcat:
        break;
    }
    return MakeReferenceKernel<float>(spec);
  }

  internal::OneDnn dnn_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeOneDnnBackend() {
  static const absl::Status kLimited = LimitIsaFromEnvironment();  // once, before any kernel
  ADAMANT_RETURN_IF_ERROR(kLimited);
  try {
    return std::make_unique<OneDnnBackend>();
  } catch (const dnnl::error& error) {
    return absl::InternalError(std::string("oneDNN does not start: ") + error.what());
  }
}

}  // namespace adamant::kernels
