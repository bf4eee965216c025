// The forward pass of a convolution, a Correlation (conv2d_plan.h), on one example with the
// channels last. Included once per target.
//
// Loops, outermost first: group; rectangle of outputs that see the same taps; line of it (a row, or
// a column where columns are the longer ones, as at a map's borders); one or two vectors of output
// channels; register tile of some pixels of the line; tap; input channel; and in registers vector
// and pixel. A line's inputs so stay in the first cache for all channels.
//
// Per tap and input channel a tile of V vectors x P pixels loads V vectors of weights, broadcasts P
// inputs and does V * P multiply-adds. Small tiles sum up several input channels apart, so that
// multiply-adds do not wait for each other.
#if defined(ADAMANT_KERNELS_CORRELATE_CHANNELS_LAST_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ADAMANT_KERNELS_CORRELATE_CHANNELS_LAST_INL_H
#undef ADAMANT_KERNELS_CORRELATE_CHANNELS_LAST_INL_H
#else
#define ADAMANT_KERNELS_CORRELATE_CHANNELS_LAST_INL_H
#endif

#include <algorithm>
#include <array>
#include <utility>

#include "services/common/kernels/native/simd/conv2d_plan.h"
#include "services/common/kernels/native/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace adamant::kernels::internal::HWY_NAMESPACE {

/// Vectors of channels of a tile.
inline constexpr std::int64_t kMostVectors = 2;
/// Sums that fit the registers beside what they are computed from.
inline constexpr int kMostSums = kRegisters == 32 ? 24 : 12;

/// Pixels of a tile of so many vectors.
constexpr int MostPixels(int vectors) { return kMostSums / vectors; }

/// Returns how many times a tile of so many sums is held, each for other terms: no more than hides
/// the latency of a multiply-add beside loads, for terms that are no multiple of it wait.
constexpr int ChainsOf(int sums) { return sums <= 2 ? 4 : sums < 8 ? 2 : 1; }

/// Steps in packed weights: panels of kLanes channels, side by side, of those that vectors hold.
struct PackedSteps {
  std::int64_t panel;
  std::int64_t channel;  ///< from one to the next of the channels that are summed up

  /// Returns where vector `index` of the channels side by side begins.
  [[nodiscard]] std::int64_t VectorAt(std::int64_t index) const {
    return index / kParts * panel + index % kParts * kVector;
  }
};

/// Memory that a tile reads and writes; pointers are to its first pixel and channel.
struct PixelTile {
  const float* in;
  std::int64_t in_pixel, inputs;
  const Tap* taps;
  std::int64_t tap_count;
  const float* weights;
  std::int64_t weight_vector, weight_input;
  const float* bias;  // null: sums start at 0
  float* out;
  std::int64_t out_pixel;
  std::int64_t lanes;  // that exist of the last vector
};

/// sums[v][p] += weights[v] * in[p], for one input channel.
template <int V, int P>
HWY_INLINE void AddProducts(const PixelTile& t,
                            const float* HWY_RESTRICT in,
                            const float* HWY_RESTRICT weights,
                            Vector (&sums)[V][P]) {
  const Floats d;
  Vector w[V];
  HWY_UNROLL(2)
  for (int v = 0; v < V; ++v) {
    w[v] = hn::LoadU(d, weights + v * t.weight_vector);
  }
  HWY_UNROLL(24)
  for (int p = 0; p < P; ++p) {
    // From a new place every four pixels, which leaves few steps to hold in registers.
    in += p > 0 && p % 4 == 0 ? 4 * t.in_pixel : 0;
    const Vector x = hn::Set(d, in[p % 4 * t.in_pixel]);
    HWY_UNROLL(2)
    for (int v = 0; v < V; ++v) {
      sums[v][p] = hn::MulAdd(w[v], x, sums[v][p]);
    }
  }
}

template <int V, int P>
void RunPixelTile(const PixelTile& tile) {
  const Floats d;
  const PixelTile t = tile;  // that stores do not make the compiler read it again
  constexpr int kChains = ChainsOf(V * P);
  Vector sums[kChains][V][P];
  HWY_UNROLL(2)
  for (int v = 0; v < V; ++v) {
    Vector bias = hn::Zero(d);
    if (t.bias != nullptr) {
      bias = LoadFirst(v + 1 < V ? kVector : t.lanes, t.bias + v * kVector);
    }
    HWY_UNROLL(24)
    for (int p = 0; p < P; ++p) {
      sums[0][v][p] = bias;
      HWY_UNROLL(4)
      for (int chain = 1; chain < kChains; ++chain) {
        sums[chain][v][p] = hn::Zero(d);
      }
    }
  }
  for (std::int64_t k = 0; k < t.tap_count; ++k) {
    const float* in = t.in + t.taps[k].input;
    const float* weights = t.weights + t.taps[k].weight;
    std::int64_t left = t.inputs;
    for (; left >= kChains; left -= kChains) {
      HWY_UNROLL(4)
      for (int chain = 0; chain < kChains; ++chain) {
        AddProducts<V, P>(t, in + chain, weights + chain * t.weight_input, sums[chain]);
      }
      in += kChains;
      weights += kChains * t.weight_input;
    }
    for (; left > 0; --left, ++in, weights += t.weight_input) {
      AddProducts<V, P>(t, in, weights, sums[0]);
    }
  }
  HWY_UNROLL(24)
  for (int p = 0; p < P; ++p) {
    HWY_UNROLL(2)
    for (int v = 0; v < V; ++v) {
      HWY_UNROLL(4)
      for (int chain = 1; chain < kChains; ++chain) {
        sums[0][v][p] = hn::Add(sums[0][v][p], sums[chain][v][p]);
      }
      StoreFirst(
          v + 1 < V ? kVector : t.lanes, sums[0][v][p], t.out + p * t.out_pixel + v * kVector);
    }
  }
}

using PixelTileFunction = void (*)(const PixelTile&);

template <int V, int... P>
constexpr auto PixelTilesOf(std::integer_sequence<int, P...>) {
  std::array<PixelTileFunction, kMostSums> result = {};
  ((result[P] = RunPixelTile<V, P + 1>), ...);
  return result;
}

/// By vectors - 1 and pixels - 1.
inline constexpr std::array kPixelTiles = {
    PixelTilesOf<1>(std::make_integer_sequence<int, MostPixels(1)>()),
    PixelTilesOf<2>(std::make_integer_sequence<int, MostPixels(2)>())};

/// `length` pixels of a line for some vectors of channels, cut into tiles of about one size. `tile`
/// has the place of the first.
inline void RunPixels(std::int64_t vectors, std::int64_t length, PixelTile tile) {
  const std::int64_t most = MostPixels(static_cast<int>(vectors));
  const std::int64_t tiles = (length + most - 1) / most;
  for (std::int64_t i = 0, begin = 0; i < tiles; ++i) {
    const std::int64_t end = length * (i + 1) / tiles;
    kPixelTiles[vectors - 1][end - begin - 1](tile);
    tile.in += (end - begin) * tile.in_pixel;
    tile.out += (end - begin) * tile.out_pixel;
    begin = end;
  }
}

/// All outputs of a group on one line.
inline void RunVectors(std::int64_t outputs,
                       const PackedSteps& packed,
                       std::int64_t length,
                       const PixelTile& line) {
  const std::int64_t count = (outputs + kVector - 1) / kVector;
  for (std::int64_t first = 0; first < count; first += kMostVectors) {
    const std::int64_t vectors = std::min(kMostVectors, count - first);
    PixelTile tile = line;
    tile.weights += packed.VectorAt(first);
    tile.weight_vector = packed.VectorAt(first + 1) - packed.VectorAt(first);
    tile.bias = line.bias == nullptr ? nullptr : line.bias + first * kVector;
    tile.out += first * kVector;
    tile.lanes = std::min(outputs - (first + vectors - 1) * kVector, kVector);
    RunPixels(vectors, length, tile);
  }
}

/// One example. `bias` may be null.
inline void CorrelateChannelsLast(const Correlation& plan,
                                  const PackedSteps& packed,
                                  const float* in,
                                  const float* weights,
                                  const float* bias,
                                  float* out) {
  constexpr std::int64_t kLongEnough = 8;
  for (std::int64_t group = 0; group < plan.groups; ++group) {
    for (const TapRectangle& r : plan.rectangles) {
      const bool across = r.columns >= std::min(r.rows, kLongEnough);
      PixelTile line = {.in = in + group * plan.inputs,
                        .in_pixel = across ? r.input_column : r.input_row,
                        .inputs = plan.inputs,
                        .taps = r.taps.data(),
                        .tap_count = static_cast<std::int64_t>(r.taps.size()),
                        .weights = weights + group * plan.panels * plan.packed_panel(),
                        .weight_vector = 0,
                        .weight_input = packed.channel,
                        .bias = bias == nullptr ? nullptr : bias + group * plan.outputs,
                        .out = out + group * plan.outputs + r.output,
                        .out_pixel = across ? r.output_column : r.output_row,
                        .lanes = 0};
      for (std::int64_t i = 0; i < (across ? r.rows : r.columns); ++i) {
        RunVectors(plan.outputs, packed, across ? r.columns : r.rows, line);
        line.in += across ? r.input_row : r.input_column;
        line.out += across ? r.output_row : r.output_column;
      }
    }
  }
}

}  // namespace adamant::kernels::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, per target
