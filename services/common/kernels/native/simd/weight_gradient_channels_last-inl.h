// Gradients of a convolution's weights and biases from examples with the channels last, by the
// passes of a WeightPlan (conv2d_plan.h). Included once per target.
//
// Loops, outermost first: group; one or two vectors of output channels; input channel (or as many
// as a tile has taps); pass, a rectangle of outputs; example; line; pixel; and in registers tap and
// vector.
//
// Per pixel a tile of V vectors x T taps loads V vectors of errors, broadcasts T inputs and does
// V * T multiply-adds. Its sums stay in registers for the whole pass, and are added to a gradient
// that lies as the packed weights do. Small tiles sum up neighbouring pixels apart, so that
// multiply-adds do not wait for each other.
#if defined(ADAMANT_KERNELS_WEIGHT_GRADIENT_CHANNELS_LAST_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ADAMANT_KERNELS_WEIGHT_GRADIENT_CHANNELS_LAST_INL_H
#undef ADAMANT_KERNELS_WEIGHT_GRADIENT_CHANNELS_LAST_INL_H
#else
#define ADAMANT_KERNELS_WEIGHT_GRADIENT_CHANNELS_LAST_INL_H
#endif

#include <algorithm>
#include <array>
#include <utility>

#include "services/common/kernels/native/simd/conv2d_plan.h"
#include "services/common/kernels/native/simd/correlate_channels_last-inl.h"
#include "services/common/kernels/native/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace adamant::kernels::internal::HWY_NAMESPACE {

/// Taps of a tile of kMostVectors vectors, if they are channels.
inline constexpr int kMostChannelTaps = kMostSums / kMostVectors;
/// And if they are positions.
inline constexpr int kMostPositionTaps = 5;
inline constexpr WeightTileLimits kPixelTileLimits = {
    .positions = kMostPositionTaps, .channels = kMostChannelTaps, .enough_channels = 4};

/// Memory that a tile reads and adds to; pointers are to its first channel and tap.
struct PixelGradientTile {
  const WeightPass* pass;
  std::int64_t examples;
  const float* input;
  std::int64_t input_example, input_tap;
  const float* error;
  std::int64_t error_example;
  float* gradient;
  std::int64_t gradient_vector, gradient_tap;
  std::int64_t lanes;  // that exist of the last vector
};

/// sums[v][k] += error[v] * input[k], for one pixel. A step of 1 that the compiler knows saves
/// address registers.
template <int V, int T, bool kAdjacent>
HWY_INLINE void AddProductsOfPixel(const PixelGradientTile& t,
                                   const float* input,
                                   const float* error,
                                   Vector (&sums)[V][T]) {
  const Floats d;
  Vector errors[V];
  HWY_UNROLL(2)
  for (int v = 0; v < V; ++v) {
    errors[v] = LoadFirst(v + 1 < V ? kVector : t.lanes, error + v * kVector);
  }
  HWY_UNROLL(24)
  for (int k = 0; k < T; ++k) {
    const Vector x = hn::Set(d, input[kAdjacent ? k : k * t.input_tap]);
    HWY_UNROLL(2)
    for (int v = 0; v < V; ++v) {
      sums[v][k] = hn::MulAdd(errors[v], x, sums[v][k]);
    }
  }
}

template <int V, int T, bool kAdjacent>
void RunPixelGradientTile(const PixelGradientTile& tile) {
  const Floats d;
  const PixelGradientTile t = tile;
  const WeightPass pass = *t.pass;
  constexpr int kChains = ChainsOf(V * T);
  Vector sums[kChains][V][T];
  HWY_UNROLL(24)
  for (int i = 0; i < kChains * V * T; ++i) {
    sums[i / (V * T)][i / T % V][i % T] = hn::Zero(d);
  }
  for (std::int64_t line = 0; line < t.examples * pass.outer; ++line) {
    const std::int64_t example = line / pass.outer;
    const std::int64_t row = line % pass.outer;
    const float* input = t.input + example * t.input_example + row * pass.input_outer;
    const float* error = t.error + example * t.error_example + row * pass.output_outer;
    std::int64_t left = pass.inner;
    for (; left >= kChains; left -= kChains) {
      HWY_UNROLL(4)
      for (int chain = 0; chain < kChains; ++chain) {
        AddProductsOfPixel<V, T, kAdjacent>(t, input, error, sums[chain]);
        input += pass.input_inner;
        error += pass.output_inner;
      }
    }
    for (; left > 0; --left, input += pass.input_inner, error += pass.output_inner) {
      AddProductsOfPixel<V, T, kAdjacent>(t, input, error, sums[0]);
    }
  }
  HWY_UNROLL(24)
  for (int k = 0; k < T; ++k) {
    HWY_UNROLL(2)
    for (int v = 0; v < V; ++v) {
      float* const at = t.gradient + k * t.gradient_tap + v * t.gradient_vector;
      Vector sum = hn::LoadU(d, at);
      HWY_UNROLL(4)
      for (int chain = 0; chain < kChains; ++chain) {
        sum = hn::Add(sum, sums[chain][v][k]);
      }
      hn::StoreU(sum, d, at);
    }
  }
}

using PixelGradientFunction = void (*)(const PixelGradientTile&);

template <int V, bool kAdjacent, int... T>
constexpr auto PixelGradientTilesOf(std::integer_sequence<int, T...>) {
  std::array<PixelGradientFunction, kMostChannelTaps> result = {};
  ((result[T] = RunPixelGradientTile<V, T + 1, kAdjacent>), ...);
  return result;
}

template <bool kAdjacent>
constexpr auto PixelGradientTilesOf() {
  using Taps = std::make_integer_sequence<int, kAdjacent ? kMostChannelTaps : kMostPositionTaps>;
  return std::array{PixelGradientTilesOf<1, kAdjacent>(Taps()),
                    PixelGradientTilesOf<2, kAdjacent>(Taps())};
}

/// By vectors - 1 and taps - 1.
inline constexpr auto kAdjacentGradientTiles = PixelGradientTilesOf<true>();
inline constexpr auto kSteppedGradientTiles = PixelGradientTilesOf<false>();

/// All input channels and passes for some vectors of output channels. `tile` has their place.
inline void RunPixelPasses(const WeightPlan& plan,
                           const Correlation& shape,
                           std::int64_t vectors,
                           PixelGradientTile tile) {
  const bool by_channel = plan.taps == WeightPlan::Taps::kChannels;
  const auto& tiles = plan.tap_input == 1 ? kAdjacentGradientTiles : kSteppedGradientTiles;
  const std::int64_t at_once = by_channel ? plan.widest : 1;
  const std::int64_t pieces = (shape.inputs + at_once - 1) / at_once;
  const PixelGradientTile first = tile;
  for (std::int64_t i = 0, begin = 0; i < pieces; ++i) {
    const std::int64_t end = shape.inputs * (i + 1) / pieces;
    for (const WeightPass& pass : plan.passes) {
      tile.pass = &pass;
      tile.input = first.input + begin + pass.input;
      tile.error = first.error + pass.output;
      tile.gradient = first.gradient + (begin * shape.kernel_plane + pass.position) * kLanes;
      tiles[vectors - 1][(by_channel ? end - begin : pass.taps) - 1](tile);
    }
    begin = end;
  }
}

/// `shape` is that of the forward pass; `gradient` lies as its packed weights.
inline void AddWeightGradientChannelsLast(const WeightPlan& plan,
                                          const Correlation& shape,
                                          const PackedSteps& packed,
                                          const PixelGradientTile& maps,
                                          float* gradient) {
  const std::int64_t count = (shape.outputs + kVector - 1) / kVector;
  for (std::int64_t group = 0; group < shape.groups; ++group) {
    for (std::int64_t first = 0; first < count; first += kMostVectors) {
      const std::int64_t vectors = std::min(kMostVectors, count - first);
      PixelGradientTile tile = maps;
      tile.input += group * shape.inputs;
      tile.input_tap = plan.tap_input;
      tile.error += group * shape.outputs + first * kVector;
      tile.gradient =
          gradient + group * shape.panels * shape.packed_panel() + packed.VectorAt(first);
      tile.gradient_vector = packed.VectorAt(first + 1) - packed.VectorAt(first);
      tile.gradient_tap = plan.tap_gradient * kLanes;
      tile.lanes = std::min(shape.outputs - (first + vectors - 1) * kVector, kVector);
      RunPixelPasses(plan, shape, vectors, tile);
    }
  }
}

/// The sum of `pixels` pixels of `channels` errors.
inline void BiasGradientChannelsLast(std::int64_t channels,
                                     std::int64_t pixels,
                                     const float* error,
                                     float* gradient) {
  const Floats d;
  constexpr int kChains = 4;  // that additions do not wait for each other
  for (std::int64_t c = 0; c < channels; c += kVector) {
    const std::int64_t lanes = std::min(channels - c, kVector);
    Vector sums[kChains] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    const float* at = error + c;
    std::int64_t left = pixels;
    for (; left >= kChains; left -= kChains, at += kChains * channels) {
      HWY_UNROLL(4)
      for (int k = 0; k < kChains; ++k) {
        sums[k] = hn::Add(sums[k], LoadFirst(lanes, at + k * channels));
      }
    }
    for (; left > 0; --left, at += channels) {
      sums[0] = hn::Add(sums[0], LoadFirst(lanes, at));
    }
    StoreFirst(lanes, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])), gradient + c);
  }
}

}  // namespace adamant::kernels::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, per target
