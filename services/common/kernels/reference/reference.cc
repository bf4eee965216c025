#include "services/common/kernels/reference/reference.h"

#include "services/common/base/check.h"
#include "services/common/kernels/backend.h"

namespace adamant::kernels {

template <class T>
std::unique_ptr<Kernel<T>> MakeReferenceKernel(const Spec& spec) {
  using model::LayerKind;
  switch (spec.layer.kind) {
    case LayerKind::kConv2d:
      return internal::MakeConv2d<T>(spec);
    case LayerKind::kMaxPool:
    case LayerKind::kAveragePool:
      return internal::MakePool<T>(spec);
    case LayerKind::kFullyConnected:
      return internal::MakeFullyConnected<T>(spec);
    case LayerKind::kRelu:
    case LayerKind::kSigmoid:
    case LayerKind::kTanh:
      return internal::MakeElementwise<T>(spec);
    case LayerKind::kDropout:
      return internal::MakeDropout<T>(spec);
    case LayerKind::kFlatten:
      return internal::MakeFlatten<T>(spec);
    case LayerKind::kAdd:
      return internal::MakeAdd<T>(spec);
    case LayerKind::kConcat:
      return internal::MakeConcat<T>(spec);
  }
  ADAMANT_CHECK(false, "a layer kind without a kernel");
  return nullptr;
}

template std::unique_ptr<Kernel<float>> MakeReferenceKernel(const Spec&);
template std::unique_ptr<Kernel<double>> MakeReferenceKernel(const Spec&);

namespace {

class ReferenceBackend final : public Backend {
 public:
  [[nodiscard]] std::optional<double> Cost(const Spec& spec) const override {
    return spec.layout == MapLayout::kChannelsFirst ? std::optional(1.0) : std::nullopt;
  }
  absl::StatusOr<std::unique_ptr<Kernel<float>>> Make(const Spec& spec) override {
    return MakeReferenceKernel<float>(spec);
  }
};

}  // namespace

std::unique_ptr<Backend> MakeReferenceBackend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace adamant::kernels
