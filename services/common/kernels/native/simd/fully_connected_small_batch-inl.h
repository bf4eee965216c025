// Fully connected layers for a few examples. Included once per target.
//
// The weights are far more than the examples, so each is read from memory once per pass, and what
// the examples need stays in the first cache.
//
// Forward, outermost first: tile of weight rows; tile of examples; column, a vector at a time; and
// in registers row and example. Each sum is a vector over columns, added up at the end.
// Backward, per piece of weight rows: tile of rows; column, two vectors at a time; example; and in
// registers row. A weight that is read counts towards the errors of all examples, while its
// gradient is summed up over them.
#if defined(ADAMANT_KERNELS_FULLY_CONNECTED_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ADAMANT_KERNELS_FULLY_CONNECTED_INL_H
#undef ADAMANT_KERNELS_FULLY_CONNECTED_INL_H
#else
#define ADAMANT_KERNELS_FULLY_CONNECTED_INL_H
#endif

#include <cstdint>

#include "services/common/base/races.h"
#include "services/common/kernels/native/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace adamant::kernels::internal::HWY_NAMESPACE {

/// Weight rows of a tile.
inline constexpr std::int64_t kTileRows = kRegisters == 32 ? 4 : 2;
/// Examples of a forward tile; with one example a tile has kTileRows * kTileExamples / 2 rows.
inline constexpr std::int64_t kTileExamples = 4;

/// Rows of weights against all examples; pointers are to the first of the rows.
struct FullyConnectedRows {
  std::int64_t batch;
  std::int64_t in;
  std::int64_t out;  // of the layer: how far apart the examples' outputs and errors are
  const float* weight;
  const float* input;  // [batch, in]
};

template <int R, int N>
ADAMANT_RACES void ForwardTile(const FullyConnectedRows& rows, const float* bias, float* output) {
  const Floats d;
  const FullyConnectedRows t = rows;
  Vector sums[R * N];
  HWY_UNROLL(16)
  for (int i = 0; i < R * N; ++i) {
    sums[i] = hn::Zero(d);
  }
  std::int64_t column = 0;
  for (; column + kVector <= t.in; column += kVector) {
    Vector weights[R];
    HWY_UNROLL(16)
    for (int r = 0; r < R; ++r) {
      weights[r] = hn::LoadU(d, t.weight + r * t.in + column);
    }
    HWY_UNROLL(16)
    for (int n = 0; n < N; ++n) {
      const Vector x = hn::LoadU(d, t.input + n * t.in + column);
      HWY_UNROLL(16)
      for (int r = 0; r < R; ++r) {
        sums[r * N + n] = hn::MulAdd(weights[r], x, sums[r * N + n]);
      }
    }
  }
  float totals[(std::int64_t{R} * N + kVector - 1) / kVector * kVector];
  SumLanes<R * N>(sums, totals);
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < N; ++n) {
      float total = bias[r] + totals[r * N + n];
      for (std::int64_t i = column; i < t.in; ++i) {
        total += t.weight[r * t.in + i] * t.input[n * t.in + i];
      }
      output[n * t.out + r] = total;
    }
  }
}

/// All examples against R rows.
template <int R>
void ForwardRows(const FullyConnectedRows& rows, const float* bias, float* output) {
  FullyConnectedRows t = rows;
  std::int64_t n = 0;
  const auto advance = [&](std::int64_t examples) {
    n += examples;
    t.input += examples * t.in;
    output += examples * t.out;
  };
  while (n + kTileExamples <= t.batch) {
    ForwardTile<R, kTileExamples>(t, bias, output);
    advance(kTileExamples);
  }
  switch (t.batch - n) {
    case 3:
      return ForwardTile<R, 3>(t, bias, output);
    case 2:
      return ForwardTile<R, 2>(t, bias, output);
    case 1:
      return ForwardTile<R, 1>(t, bias, output);
    default:
      return;
  }
}

inline void FullyConnectedForward(FullyConnectedRows rows, const float* bias, float* output) {
  std::int64_t row = 0;
  const auto advance = [&](std::int64_t count) {
    row += count;
    rows.weight += count * rows.in;
    bias += count;
    output += count;
  };
  constexpr std::int64_t kRowsOfOne = kTileRows * kTileExamples / 2;
  while (rows.batch == 1 && row + kRowsOfOne <= rows.out) {
    ForwardTile<kRowsOfOne, 1>(rows, bias, output);
    advance(kRowsOfOne);
  }
  while (row + kTileRows <= rows.out) {
    ForwardRows<kTileRows>(rows, bias, output);
    advance(kTileRows);
  }
  while (row < rows.out) {
    ForwardRows<1>(rows, bias, output);
    advance(1);
  }
}

/// Memory that a backward tile reads and adds to; `errors` are of the first of the rows.
struct BackwardTile {
  FullyConnectedRows rows;
  const float* errors;  // of the outputs: [batch, out]
  float* input_errors;  // [batch, in]; null: not asked for
  float* gradient;      // [R, in]
};

/// C vectors of columns from `column` on.
template <int R, int C, bool kErrors>
HWY_INLINE void BackwardColumns(const BackwardTile& tile, std::int64_t column) {
  const Floats d;
  const FullyConnectedRows& t = tile.rows;
  Vector weights[R * C];
  Vector gradients[R * C];
  HWY_UNROLL(16)
  for (int i = 0; i < R * C; ++i) {
    gradients[i] = hn::Zero(d);
    if constexpr (kErrors) {
      weights[i] = hn::LoadU(d, t.weight + i / C * t.in + column + i % C * kVector);
    }
  }
  const float* input = t.input + column;
  const float* errors = tile.errors;
  float* input_errors = tile.input_errors + (kErrors ? column : 0);
  for (std::int64_t n = 0; n < t.batch; ++n) {
    Vector x[C];
    Vector sums[C];
    HWY_UNROLL(16)
    for (int c = 0; c < C; ++c) {
      x[c] = hn::LoadU(d, input + c * kVector);
      if constexpr (kErrors) {
        sums[c] = hn::LoadU(d, input_errors + c * kVector);
      }
    }
    HWY_UNROLL(16)
    for (int r = 0; r < R; ++r) {
      const Vector error = hn::Set(d, errors[r]);
      HWY_UNROLL(16)
      for (int c = 0; c < C; ++c) {
        gradients[r * C + c] = hn::MulAdd(error, x[c], gradients[r * C + c]);
        if constexpr (kErrors) {
          sums[c] = hn::MulAdd(error, weights[r * C + c], sums[c]);
        }
      }
    }
    if constexpr (kErrors) {
      HWY_UNROLL(16)
      for (int c = 0; c < C; ++c) {
        hn::StoreU(sums[c], d, input_errors + c * kVector);
      }
      input_errors += t.in;
    }
    input += t.in;
    errors += t.out;
  }
  HWY_UNROLL(16)
  for (int i = 0; i < R * C; ++i) {
    hn::StoreU(gradients[i], d, tile.gradient + i / C * t.in + column + i % C * kVector);
  }
}

/// The columns from `column` on that fill no vector.
template <int R, bool kErrors>
HWY_INLINE void BackwardTail(const BackwardTile& tile, std::int64_t column) {
  const FullyConnectedRows& t = tile.rows;
  for (; column < t.in; ++column) {
    for (int r = 0; r < R; ++r) {
      const std::int64_t at = r * t.in + column;
      float gradient = 0;
      for (std::int64_t n = 0; n < t.batch; ++n) {
        const float error = tile.errors[n * t.out + r];
        gradient += error * t.input[n * t.in + column];
        if constexpr (kErrors) {
          tile.input_errors[n * t.in + column] += error * t.weight[at];
        }
      }
      tile.gradient[at] = gradient;
    }
  }
}

template <int R, bool kErrors>
ADAMANT_RACES void RunBackwardTile(const BackwardTile& tile) {
  std::int64_t column = 0;
  for (; column + 2 * kVector <= tile.rows.in; column += 2 * kVector) {
    BackwardColumns<R, 2, kErrors>(tile, column);
  }
  for (; column + kVector <= tile.rows.in; column += kVector) {
    BackwardColumns<R, 1, kErrors>(tile, column);
  }
  BackwardTail<R, kErrors>(tile, column);
}

template <bool kErrors>
void BackwardPiece(BackwardTile tile, std::int64_t count) {
  const auto advance = [&tile](std::int64_t rows) {
    tile.rows.weight += rows * tile.rows.in;
    tile.errors += rows;
    tile.gradient += rows * tile.rows.in;
  };
  std::int64_t row = 0;
  for (; row + kTileRows <= count; row += kTileRows) {
    RunBackwardTile<kTileRows, kErrors>(tile);
    advance(kTileRows);
  }
  for (; row < count; ++row) {
    RunBackwardTile<1, kErrors>(tile);
    advance(1);
  }
}

/// `count` rows: adds to the errors of the inputs, writes the gradients.
inline void FullyConnectedBackward(const BackwardTile& tile, std::int64_t count) {
  if (tile.input_errors == nullptr) {
    BackwardPiece<false>(tile, count);
  } else {
    BackwardPiece<true>(tile, count);
  }
}

}  // namespace adamant::kernels::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, per target
