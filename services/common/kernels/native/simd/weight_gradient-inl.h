// Gradients of a convolution's weights and biases from one block of examples, by the passes of a
// WeightPlan (conv2d_plan.h). Included once per target.
//
// Loops, outermost first: group; output channels of a tile; input channel (or as many as a tile has
// taps); pass, a rectangle of outputs; line; pixel; part of the examples that a vector holds; and
// in registers tap and output channel. The passes go through the map in bands of rows, so that what
// one reads is in the first cache for the next ones, where tiles take their taps from channels.
//
// Per pixel a tile of C channels x T taps loads C + T vectors and does C * T multiply-adds. Its
// sums stay in registers for the whole rectangle, each a vector over examples; at its end they are
// added up across the vector, many at a time.
#if defined(ADAMANT_KERNELS_WEIGHT_GRADIENT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ADAMANT_KERNELS_WEIGHT_GRADIENT_INL_H
#undef ADAMANT_KERNELS_WEIGHT_GRADIENT_INL_H
#else
#define ADAMANT_KERNELS_WEIGHT_GRADIENT_INL_H
#endif

#include <algorithm>
#include <array>
#include <utility>

#include "services/common/kernels/native/simd/conv2d_plan.h"
#include "services/common/kernels/native/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace adamant::kernels::internal::HWY_NAMESPACE {

/// As measured on Zen 5. With 16 registers, tiles of 5 taps have too few sums to hide the latency
/// of a multiply-add.
inline constexpr WeightTileLimits kWeightTileLimits = {.positions = 5,
                                                       .channels = kRegisters == 32 ? 5 : 4,
                                                       .enough_channels = kRegisters == 32 ? 4 : 3};
inline constexpr int kMostTaps = 5;

/// Output channels of a tile of so many taps: sums, an error per channel and an input fit.
constexpr std::int64_t MaxChannels(std::int64_t taps) { return (kRegisters - 1) / (taps + 1); }

/// Memory that a tile reads and adds to; pointers are to its first channel and tap.
struct GradientTile {
  const WeightPass* pass;
  const float* input;
  std::int64_t input_tap;
  const float* error;
  std::int64_t error_channel;
  float* gradient;
  std::int64_t gradient_channel;
  std::int64_t gradient_tap;
};

template <int C, int T>
void RunGradientTile(const GradientTile& tile) {
  const Floats d;
  const GradientTile t = tile;
  const WeightPass pass = *t.pass;
  constexpr int kSums = C * T;
  Vector sums[kSums];
  HWY_UNROLL(32)
  for (int i = 0; i < kSums; ++i) {
    sums[i] = hn::Zero(d);
  }
  for (std::int64_t line = 0; line < pass.outer; ++line) {
    const float* input = t.input + line * pass.input_outer;
    const float* error = t.error + line * pass.output_outer;
    for (std::int64_t pixel = 0; pixel < pass.inner; ++pixel) {
      for (std::int64_t part = 0; part < kLanes; part += kVector) {
        Vector errors[C];
        HWY_UNROLL(16)
        for (std::int64_t c = 0; c < C; ++c) {
          errors[c] = hn::LoadU(d, error + c * t.error_channel + part);
        }
        HWY_UNROLL(16)
        for (std::int64_t k = 0; k < T; ++k) {
          const Vector x = hn::LoadU(d, input + k * t.input_tap + part);
          HWY_UNROLL(16)
          for (std::int64_t c = 0; c < C; ++c) {
            sums[c * T + k] = hn::MulAdd(errors[c], x, sums[c * T + k]);
          }
        }
      }
      input += pass.input_inner;
      error += pass.output_inner;
    }
  }
  float totals[kSums + kVector];
  SumLanes<kSums>(sums, totals);
  for (std::int64_t c = 0; c < C; ++c) {
    for (std::int64_t k = 0; k < T; ++k) {
      t.gradient[c * t.gradient_channel + k * t.gradient_tap] += totals[c * T + k];
    }
  }
}

using GradientTileFunction = void (*)(const GradientTile&);

template <int T, int... C>
constexpr auto GradientTilesOfTaps(std::integer_sequence<int, C...>) {
  std::array<GradientTileFunction, kRegisters> result = {};
  ((result[C] = RunGradientTile<C + 1, T>), ...);
  return result;
}

template <int... T>
constexpr auto AllGradientTiles(std::integer_sequence<int, T...>) {
  return std::array{
      GradientTilesOfTaps<T + 1>(std::make_integer_sequence<int, MaxChannels(T + 1)>())...};
}

/// By taps - 1 and channels - 1.
inline constexpr auto kGradientTiles =
    AllGradientTiles(std::make_integer_sequence<int, kMostTaps>());

/// Adds what the passes find for `channels` output channels and, with Taps::kChannels, `inputs`
/// input channels. `tile` has the place of the first of both.
inline void RunPasses(const WeightPlan& plan,
                      std::int64_t channels,
                      std::int64_t inputs,
                      const GradientTile& at) {
  GradientTile tile = at;
  for (const WeightPass& pass : plan.passes) {
    const std::int64_t taps = plan.taps == WeightPlan::Taps::kChannels ? inputs : pass.taps;
    tile.pass = &pass;
    tile.input = at.input + pass.input;
    tile.error = at.error + pass.output;
    tile.gradient = at.gradient + pass.position;
    kGradientTiles[taps - 1][channels - 1](tile);
  }
}

/// All input channels for `channels` output channels of a group.
inline void RunInputs(const WeightPlan& plan,
                      const Correlation& shape,
                      std::int64_t channels,
                      GradientTile tile) {
  const std::int64_t at_once = plan.taps == WeightPlan::Taps::kChannels ? plan.widest : 1;
  const std::int64_t pieces = (shape.inputs + at_once - 1) / at_once;
  for (std::int64_t i = 0, begin = 0; i < pieces; ++i) {
    const std::int64_t end = shape.inputs * (i + 1) / pieces;
    RunPasses(plan, channels, end - begin, tile);
    tile.input += (end - begin) * shape.input_plane;
    tile.gradient += (end - begin) * shape.kernel_plane;
    begin = end;
  }
}

/// `shape` is that of the forward pass; `gradient` is canonical.
inline void AddWeightGradient(const WeightPlan& plan,
                              const Correlation& shape,
                              const float* input,
                              const float* error,
                              float* gradient) {
  const std::int64_t most = MaxChannels(plan.widest);
  const std::int64_t pieces = (shape.outputs + most - 1) / most;
  for (std::int64_t group = 0; group < shape.groups; ++group) {
    for (std::int64_t i = 0, begin = 0; i < pieces; ++i) {
      const std::int64_t end = shape.outputs * (i + 1) / pieces;
      const std::int64_t first = group * shape.outputs + begin;
      RunInputs(plan,
                shape,
                end - begin,
                {.pass = nullptr,
                 .input = input + group * shape.inputs * shape.input_plane,
                 .input_tap = plan.tap_input,
                 .error = error + first * shape.output_plane,
                 .error_channel = shape.output_plane,
                 .gradient = gradient + first * shape.weight_output,
                 .gradient_channel = shape.weight_output,
                 .gradient_tap = plan.tap_gradient});
      begin = end;
    }
  }
}

/// Adds the sum of each of `channels` planes of errors.
inline void AddBiasGradient(std::int64_t channels,
                            std::int64_t plane,
                            const float* error,
                            float* gradient) {
  const Floats d;
  constexpr int kChains = 4;  // that additions do not wait for each other
  for (std::int64_t c = 0; c < channels; ++c, error += plane) {
    Vector sums[kChains] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    std::int64_t i = 0;
    for (; i + kChains * kVector <= plane; i += kChains * kVector) {
      HWY_UNROLL(4)
      for (int k = 0; k < kChains; ++k) {
        sums[k] = hn::Add(sums[k], hn::LoadU(d, error + i + k * kVector));
      }
    }
    for (; i < plane; i += kVector) {
      sums[0] = hn::Add(sums[0], hn::LoadU(d, error + i));
    }
    gradient[c] += hn::GetLane(
        hn::SumOfLanes(d, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]))));
  }
}

}  // namespace adamant::kernels::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, per target
