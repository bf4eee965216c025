// Errors of a convolution's inputs with the channels last: each error of an output is spread over
// the inputs that it saw. Included once per target.
//
// Loops, outermost first: group; vector of input channels; row of errors; row of the kernel; tile
// of some errors of that row; some taps of the kernel's row; output channel; and in registers error
// and tap.
//
// A tile of P errors x K taps has P + K - 1 sums, one for each column it reaches, so that maps
// without padding need no tests and nothing is multiplied by zero. Per output channel it loads K
// vectors of weights, broadcasts P errors and does P * K multiply-adds. Where columns are apart, by
// stride or dilation, a tile is a single error.
#if defined(ADAMANT_KERNELS_SCATTER_CHANNELS_LAST_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ADAMANT_KERNELS_SCATTER_CHANNELS_LAST_INL_H
#undef ADAMANT_KERNELS_SCATTER_CHANNELS_LAST_INL_H
#else
#define ADAMANT_KERNELS_SCATTER_CHANNELS_LAST_INL_H
#endif

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "services/common/kernels/native/simd/correlate_channels_last-inl.h"
#include "services/common/kernels/native/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace adamant::kernels::internal::HWY_NAMESPACE {

inline constexpr int kMostScatterTaps = 5;
/// So many that the sums fit twice with 32 registers, and once with 16.
inline constexpr int kMostScatterErrors = kRegisters == 32 ? 8 : 6;

/// Memory that a tile reads and adds to.
struct ScatterTile {
  const Tap* rows;  // of errors and of the kernel
  std::int64_t row_count;
  const float* errors;  // of the first output of a row
  std::int64_t error_pixel, outputs;
  const float* weights;  // of the first tap of a row
  std::int64_t weight_output;
  float* row;           // of the inputs' errors, at the first channel
  std::int64_t column;  // that the first tap reads for the first output
  std::int64_t column_step, columns, pixel;
  std::int64_t lanes;  // that exist of the vector
};

/// sums[p + k] += error[p] * weights[k], for one output channel.
template <int P, int K>
HWY_INLINE void AddSpread(const ScatterTile& t,
                          const float* HWY_RESTRICT error,
                          const float* HWY_RESTRICT weights,
                          Vector (&sums)[P + K - 1]) {
  const Floats d;
  Vector w[K];
  HWY_UNROLL(8)
  for (int k = 0; k < K; ++k) {
    w[k] = hn::LoadU(d, weights + k * kLanes);
  }
  HWY_UNROLL(8)
  for (int p = 0; p < P; ++p) {
    const Vector x = hn::Set(d, error[p * t.error_pixel]);
    HWY_UNROLL(8)
    for (int k = 0; k < K; ++k) {
      sums[p + k] = hn::MulAdd(w[k], x, sums[p + k]);
    }
  }
}

template <int P, int K>
void RunScatterTile(const ScatterTile& tile) {
  const Floats d;
  const ScatterTile t = tile;  // that stores do not make the compiler read it again
  constexpr int kSums = P + K - 1;
  constexpr int kChains = 2 * kSums <= kMostSums ? 2 : 1;  // multiply-adds wait less
  Vector sums[kChains][kSums];
  HWY_UNROLL(24)
  for (int i = 0; i < kChains * kSums; ++i) {
    sums[i / kSums][i % kSums] = hn::Zero(d);
  }
  for (std::int64_t i = 0; i < t.row_count; ++i) {
    const float* error = t.errors + t.rows[i].input;
    const float* weights = t.weights + t.rows[i].weight;
    std::int64_t left = t.outputs;
    for (; left >= kChains; left -= kChains) {
      HWY_UNROLL(2)
      for (int chain = 0; chain < kChains; ++chain) {
        AddSpread<P, K>(t, error + chain, weights + chain * t.weight_output, sums[chain]);
      }
      error += kChains;
      weights += kChains * t.weight_output;
    }
    for (; left > 0; --left, ++error, weights += t.weight_output) {
      AddSpread<P, K>(t, error, weights, sums[0]);
    }
  }
  HWY_UNROLL(24)
  for (int i = 0; i < kSums; ++i) {
    const std::int64_t column = t.column + i * t.column_step;
    if (column >= 0 && column < t.columns) {
      float* const at = t.row + column * t.pixel;
      Vector sum = hn::Add(LoadFirst(t.lanes, at), sums[0][i]);
      if constexpr (kChains == 2) {
        sum = hn::Add(sum, sums[1][i]);
      }
      StoreFirst(t.lanes, sum, at);
    }
  }
}

using ScatterFunction = void (*)(const ScatterTile&);

template <int K, int... P>
constexpr auto ScatterTilesOf(std::integer_sequence<int, P...>) {
  return std::array<ScatterFunction, sizeof...(P)>{RunScatterTile<P + 1, K>...};
}

template <int... K>
constexpr auto AllScatterTiles(std::integer_sequence<int, K...>) {
  return std::array{
      ScatterTilesOf<K + 1>(std::make_integer_sequence<int, kMostScatterErrors>())...};
}

/// By taps - 1 and errors - 1.
inline constexpr auto kScatterTiles =
    AllScatterTiles(std::make_integer_sequence<int, kMostScatterTaps>());

/// One row of inputs.
inline void ScatterRow(const Spec& spec, const ScatterTile& row) {
  const model::Layer& l = spec.layer;
  const bool apart = l.stride.width > 1 || l.dilation.width > 1;
  const std::int64_t width = spec.output[2];
  const std::int64_t most = apart ? 1 : kMostScatterErrors;
  const std::int64_t tiles = (width + most - 1) / most;
  const std::int64_t pieces = (l.kernel.width + kMostScatterTaps - 1) / kMostScatterTaps;
  for (std::int64_t i = 0, begin = 0; i < tiles; ++i) {
    const std::int64_t end = width * (i + 1) / tiles;
    for (std::int64_t k = 0, tap = 0; k < pieces; ++k) {
      const std::int64_t next = l.kernel.width * (k + 1) / pieces;
      ScatterTile tile = row;
      tile.errors += begin * row.error_pixel;
      tile.weights += tap * kLanes;
      tile.column = begin * l.stride.width - l.padding.width + tap * l.dilation.width;
      kScatterTiles[next - tap - 1][end - begin - 1](tile);
      tap = next;
    }
    begin = end;
  }
}

/// By row of the inputs: the rows of errors (`input`) that saw it, and of packed weights, with
/// which.
inline std::vector<std::vector<Tap>> ScatterRows(const Spec& spec) {
  const model::Layer& l = spec.layer;
  std::vector<std::vector<Tap>> rows(static_cast<std::size_t>(spec.inputs[0][1]));
  for (std::int64_t out = 0; out < spec.output[1]; ++out) {
    for (std::int64_t k = 0; k < l.kernel.height; ++k) {
      const std::int64_t in = out * l.stride.height - l.padding.height + k * l.dilation.height;
      if (in >= 0 && in < spec.inputs[0][1]) {
        rows[static_cast<std::size_t>(in)].push_back(
            {out * spec.output[2] * spec.output[0], k * l.kernel.width * kLanes});
      }
    }
  }
  return rows;
}

/// All rows, for one vector of channels. `map` has the place of the first of everything.
inline void ScatterMap(const Spec& spec,
                       const std::vector<std::vector<Tap>>& rows,
                       const ScatterTile& map) {
  ScatterTile row = map;
  for (const std::vector<Tap>& seen : rows) {
    row.rows = seen.data();
    row.row_count = static_cast<std::int64_t>(seen.size());
    ScatterRow(spec, row);
    row.row += map.columns * map.pixel;
  }
}

/// One example: adds to the inputs' errors. `rows` are ScatterRows.
inline void ScatterChannelsLast(const Spec& spec,
                                const std::vector<std::vector<Tap>>& rows,
                                const PackedSteps& packed,
                                const float* errors,
                                const float* weights,
                                float* input_errors) {
  const std::int64_t groups = spec.layer.groups;
  const std::int64_t inputs = spec.inputs[0][0] / groups;
  const std::int64_t outputs = spec.output[0] / groups;
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t channel = 0; channel < inputs; channel += kVector) {
      ScatterMap(spec,
                 rows,
                 {.rows = nullptr,
                  .row_count = 0,
                  .errors = errors + group * outputs,
                  .error_pixel = spec.output[0],
                  .outputs = outputs,
                  .weights = weights + group * outputs * packed.channel +
                             packed.VectorAt(channel / kVector),
                  .weight_output = packed.channel,
                  .row = input_errors + group * inputs + channel,
                  .column = 0,
                  .column_step = spec.layer.dilation.width,
                  .columns = spec.inputs[0][2],
                  .pixel = spec.inputs[0][0],
                  .lanes = std::min(inputs - channel, kVector)});
    }
  }
}

}  // namespace adamant::kernels::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, per target
