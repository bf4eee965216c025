#include "services/common/kernels/cost.h"

#include <algorithm>

namespace adamant::kernels::internal {
namespace {

// A core of nominal speed, per microsecond.
constexpr double kFlop = 200e3;
constexpr double kBytes = 20e3;

double RoundUp(std::int64_t value, std::int64_t step) {
  const std::int64_t steps = (value + step - 1) / step;
  return static_cast<double>(steps * step);
}

double Flop(const Spec& spec) {
  const model::Layer& l = spec.layer;
  const std::int64_t channels = spec.inputs[0][0] / l.groups;
  const double per_output = 2.0 * static_cast<double>(channels * l.kernel.height * l.kernel.width);
  const double forward = per_output * static_cast<double>(spec.batch * *ElementCount(spec.output));
  return spec.training ? 3 * forward : forward;
}

/// oneDNN fills vectors with channels, so those that are missing to a whole vector cost as much.
double ShareOfPeakChannelsLast(const Spec& spec) {
  const std::int64_t in = spec.inputs[0][0] / spec.layer.groups;
  const std::int64_t out = spec.output[0] / spec.layer.groups;
  const double filled =
      static_cast<double>(in) / RoundUp(in, 16) * (static_cast<double>(out) / RoundUp(out, 16));
  return std::max(0.85 * filled, 0.2);
}

/// Own kernels fill them with examples.
double ShareOfPeakBatchInnermost(const Spec& spec) {
  const double filled = static_cast<double>(spec.batch) / RoundUp(spec.batch, kLanes);
  return 0.85 * filled;
}

double BytesMoved(const Spec& spec) {
  std::int64_t elements = *ElementCount(spec.output);
  for (const Shape& input : spec.inputs) {
    elements += *ElementCount(input);
  }
  const double bytes = sizeof(float) * static_cast<double>(elements * spec.batch);
  return spec.training ? 2 * bytes : bytes;
}

bool SameBytes(const Spec& spec) {
  const Shape& maps = spec.inputs[0];
  const bool flat = maps.size() == 1 || maps[0] == 1 || maps[1] * maps[2] == 1;
  return spec.layout == spec.input_layout || (flat && spec.layout != MapLayout::kBatchInnermost &&
                                              spec.input_layout != MapLayout::kBatchInnermost);
}

}  // namespace

std::optional<double> EstimateCost(const Spec& spec) {
  if (spec.layer.kind == model::LayerKind::kFlatten) {
    return SameBytes(spec) ? 0 : BytesMoved(spec) / kBytes;
  }
  if (spec.output.size() == 1) {
    return BytesMoved(spec) / kBytes;  // one layout only: nothing to compare
  }
  if (spec.layout == MapLayout::kChannelsFirst ||
      (spec.layout == MapLayout::kBatchInnermost && spec.batch < kLanes / 2)) {
    return std::nullopt;
  }
  if (spec.layer.kind != model::LayerKind::kConv2d) {
    return BytesMoved(spec) / kBytes;
  }
  const double share = spec.layout == MapLayout::kBatchInnermost ? ShareOfPeakBatchInnermost(spec)
                                                                 : ShareOfPeakChannelsLast(spec);
  return Flop(spec) / (share * kFlop);
}

}  // namespace adamant::kernels::internal
