// Runs a Correlation (conv2d_plan.h) on one block of examples. Included once per target.
//
// Loops, outermost first: group; rectangle of outputs that see the same taps; line of it (a row, or
// a column where columns are the longer ones, as at a map's borders); panel of output channels;
// register tile of some channels x some pixels of the line; part of the examples that a vector
// holds; input channel; tap; and in registers pixel and channel. A line's inputs so stay in the
// first cache for all panels, and the weights of a panel, in the order they are read, for the line.
//
// Per tap a tile of C channels x P pixels loads P vectors, broadcasts C weights and does C * P
// multiply-adds: 5 x 5 or 8 x 3 of them with 32 registers, 4 x 3 or 6 x 2 with 16, so that loads
// never bind. Where a rectangle is a single pixel, as in a corner, the tile is a whole panel.
#if defined(ADAMANT_KERNELS_CORRELATE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ADAMANT_KERNELS_CORRELATE_INL_H
#undef ADAMANT_KERNELS_CORRELATE_INL_H
#else
#define ADAMANT_KERNELS_CORRELATE_INL_H
#endif

#include <algorithm>
#include <array>
#include <utility>

#include "services/common/kernels/native/simd/conv2d_plan.h"
#include "services/common/kernels/native/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace adamant::kernels::internal::HWY_NAMESPACE {

/// Output channels of the largest tile, which has one pixel; larger lines take half of a panel.
inline constexpr std::int64_t kLargestPanel = kRegisters == 32 ? 16 : 12;

/// Pixels of a tile of so many channels: accumulators, a vector per pixel and a weight fit.
constexpr std::int64_t MaxPixels(std::int64_t channels) {
  return std::max<std::int64_t>(1, (kRegisters - 1) / (channels + 1));
}

/// Memory that a tile reads and writes; pointers are to its first pixel and channel.
struct Tile {
  const float* in;
  std::int64_t in_pixel, in_plane, inputs;
  const Tap* taps;
  std::int64_t tap_count;
  const float* weights;
  std::int64_t weight_plane;
  const float* bias;  // null: sums start at 0
  float* out;
  std::int64_t out_pixel, out_plane;
};

template <int C, int P>
void RunTile(const Tile& tile) {
  const Floats d;
  const Tile t = tile;  // that stores do not make the compiler read it again
  for (std::int64_t part = 0; part < kLanes; part += kVector) {
    Vector sums[C][P];
    HWY_UNROLL(16)
    for (int c = 0; c < C; ++c) {
      const Vector bias = t.bias == nullptr ? hn::Zero(d) : hn::Set(d, t.bias[c]);
      HWY_UNROLL(16)
      for (int p = 0; p < P; ++p) {
        sums[c][p] = bias;
      }
    }
    const float* plane = t.in + part;
    const float* plane_weights = t.weights;
    for (std::int64_t i = 0; i < t.inputs; ++i) {
      for (std::int64_t k = 0; k < t.tap_count; ++k) {
        const float* in = plane + t.taps[k].input;
        const float* weights = plane_weights + t.taps[k].weight;
        Vector x[P];
        HWY_UNROLL(16)
        for (int p = 0; p < P; ++p) {
          x[p] = hn::LoadU(d, in + p * t.in_pixel);
        }
        HWY_UNROLL(16)
        for (int c = 0; c < C; ++c) {
          const Vector weight = hn::Set(d, weights[c]);
          HWY_UNROLL(16)
          for (int p = 0; p < P; ++p) {
            sums[c][p] = hn::MulAdd(weight, x[p], sums[c][p]);
          }
        }
      }
      plane += t.in_plane;
      plane_weights += t.weight_plane;
    }
    HWY_UNROLL(16)
    for (int c = 0; c < C; ++c) {
      HWY_UNROLL(16)
      for (int p = 0; p < P; ++p) {
        hn::StoreU(sums[c][p], d, t.out + c * t.out_plane + p * t.out_pixel + part);
      }
    }
  }
}

using TileFunction = void (*)(const Tile&);

template <int C, int... P>
constexpr auto TilesOfChannels(std::integer_sequence<int, P...>) {
  std::array<TileFunction, kRegisters> result = {};
  ((result[P] = RunTile<C, P + 1>), ...);
  return result;
}

template <int... C>
constexpr auto AllTiles(std::integer_sequence<int, C...>) {
  return std::array{TilesOfChannels<C + 1>(std::make_integer_sequence<int, MaxPixels(C + 1)>())...};
}

/// By channels - 1 and pixels - 1.
inline constexpr auto kTiles = AllTiles(std::make_integer_sequence<int, kLargestPanel>());

/// `length` pixels of a line for `channels` channels, cut into tiles of about one size. `tile` has
/// the place of the first.
inline void RunLine(std::int64_t channels, std::int64_t length, Tile tile) {
  const std::int64_t most = MaxPixels(channels);
  const std::int64_t tiles = (length + most - 1) / most;
  for (std::int64_t i = 0, begin = 0; i < tiles; ++i) {
    const std::int64_t end = length * (i + 1) / tiles;
    kTiles[channels - 1][end - begin - 1](tile);
    tile.in += (end - begin) * tile.in_pixel;
    tile.out += (end - begin) * tile.out_pixel;
    begin = end;
  }
}

/// All outputs of a group on one line.
inline void RunPanels(const Correlation& plan, std::int64_t length, Tile tile) {
  for (std::int64_t first = 0; first < plan.outputs; first += plan.panel) {
    const std::int64_t channels = std::min(plan.panel, plan.outputs - first);
    const std::int64_t pieces =
        channels <= kLargestPanel / 2 || length <= MaxPixels(channels) ? 1 : 2;
    Tile piece = tile;
    for (std::int64_t i = 0, begin = 0; i < pieces; ++i) {
      const std::int64_t end = channels * (i + 1) / pieces;
      piece.weights = tile.weights + begin;
      piece.bias = tile.bias == nullptr ? nullptr : tile.bias + first + begin;
      piece.out = tile.out + (first + begin) * plan.output_plane;
      RunLine(end - begin, length, piece);
      begin = end;
    }
    tile.weights += plan.packed_panel();
  }
}

/// `tile` has the place of the group.
inline void RunRectangle(const Correlation& plan, const TapRectangle& r, Tile tile) {
  constexpr std::int64_t kLongEnough = 8;
  const bool across = r.columns >= std::min(r.rows, kLongEnough);
  tile.taps = r.taps.data();
  tile.tap_count = static_cast<std::int64_t>(r.taps.size());
  tile.in_pixel = across ? r.input_column : r.input_row;
  tile.out_pixel = across ? r.output_column : r.output_row;
  tile.out += r.output;
  for (std::int64_t line = 0; line < (across ? r.rows : r.columns); ++line) {
    RunPanels(plan, across ? r.columns : r.rows, tile);
    tile.in += across ? r.input_row : r.input_column;
    tile.out += across ? r.output_row : r.output_column;
  }
}

/// One block of examples. `bias` may be null.
inline void Correlate(
    const Correlation& plan, const float* in, const float* packed, const float* bias, float* out) {
  for (std::int64_t group = 0; group < plan.groups; ++group) {
    const Tile tile = {.in = in + group * plan.inputs * plan.input_plane,
                       .in_pixel = 0,
                       .in_plane = plan.input_plane,
                       .inputs = plan.inputs,
                       .taps = nullptr,
                       .tap_count = 0,
                       .weights = packed + group * plan.panels * plan.packed_panel(),
                       .weight_plane = plan.kernel_plane * plan.panel,
                       .bias = bias == nullptr ? nullptr : bias + group * plan.outputs,
                       .out = out + group * plan.outputs * plan.output_plane,
                       .out_pixel = 0,
                       .out_plane = plan.output_plane};
    for (const TapRectangle& rectangle : plan.rectangles) {
      RunRectangle(plan, rectangle, tile);
    }
  }
}

/// Canonical weights into the order described at Correlation::panel.
inline void Pack(const Correlation& plan, const float* weights, float* packed) {
  for (std::int64_t group = 0; group < plan.groups; ++group) {
    // A group's weights start at its first output channel of the layer, whichever side that is.
    const float* from = weights + group * plan.inputs * plan.outputs * plan.kernel_plane;
    for (std::int64_t first = 0; first < plan.panels * plan.panel; first += plan.panel) {
      const std::int64_t channels = std::min(plan.panel, plan.outputs - first);
      for (std::int64_t i = 0; i < plan.inputs; ++i) {
        for (std::int64_t k = 0; k < plan.kernel_plane; ++k, packed += plan.panel) {
          const float* at = from + first * plan.weight_output + i * plan.weight_input + k;
          for (std::int64_t c = 0; c < channels; ++c) {
            packed[c] = at[c * plan.weight_output];
          }
        }
      }
    }
  }
}

}  // namespace adamant::kernels::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, per target
