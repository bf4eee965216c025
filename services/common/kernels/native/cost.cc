#include "services/common/kernels/native/cost.h"

#include <algorithm>

#include "services/common/kernels/native/pool.h"

namespace adamant::kernels::internal {
namespace {

// A core of nominal speed, per microsecond.
constexpr double kFlop = 200e3;
constexpr double kBytes = 20e3;

/// The smallest batch that may lie innermost.
constexpr std::int64_t kFewestInnermost = kLanes / 2;

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

/// The share of whole vectors that so many channels are.
double Fill(std::int64_t channels) {
  return static_cast<double>(channels) / RoundUp(channels, kLanes);
}

std::int64_t InputsOf(const Spec& spec) { return spec.inputs[0][0] / spec.layer.groups; }
std::int64_t OutputsOf(const Spec& spec) { return spec.output[0] / spec.layer.groups; }

/// oneDNN fills vectors with channels, so those that are missing to a whole vector cost as much.
double ShareOfPeakOneDnn(const Spec& spec) {
  return std::max(0.85 * Fill(InputsOf(spec)) * Fill(OutputsOf(spec)), 0.2);
}

/// Own kernels with the channels last fill them with output channels, and with input channels where
/// it is errors of the inputs. Very few input channels are an image's, whose errors nobody asks
/// for.
double ShareOfPeakOwnChannelsLast(const Spec& spec) {
  constexpr std::int64_t kImage = 3;
  constexpr double kFilled = 0.6;
  const double outputs = 1 / Fill(OutputsOf(spec));
  return InputsOf(spec) <= kImage ? kFilled / outputs
                                  : kFilled / ((2 * outputs + 1 / Fill(InputsOf(spec))) / 3);
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
      (spec.layout == MapLayout::kBatchInnermost && spec.batch < kFewestInnermost)) {
    return std::nullopt;
  }
  if (spec.layer.kind != model::LayerKind::kConv2d) {
    const bool is_pool = spec.layer.kind == model::LayerKind::kMaxPool;
    return is_pool && spec.layout == MapLayout::kBatchInnermost && !ServesPool(spec)
               ? std::nullopt
               : std::optional(BytesMoved(spec) / kBytes);
  }
  const double share = spec.layout == MapLayout::kBatchInnermost ? ShareOfPeakBatchInnermost(spec)
                       : OwnChannelsLastIsBest(spec)             ? ShareOfPeakOwnChannelsLast(spec)
                                                                 : ShareOfPeakOneDnn(spec);
  return Flop(spec) / (share * kFlop);
}

bool OwnChannelsLastIsBest(const Spec& spec) {
  return spec.batch < kFewestInnermost &&
         ShareOfPeakOwnChannelsLast(spec) > ShareOfPeakOneDnn(spec);
}

bool OwnPoolIsBest(const Spec& spec) {
  return spec.layout == MapLayout::kBatchInnermost ||
         (spec.layout == MapLayout::kChannelsLast && spec.batch < kFewestInnermost &&
          ServesPool(spec));
}

}  // namespace adamant::kernels::internal
