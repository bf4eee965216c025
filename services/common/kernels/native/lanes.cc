#include "services/common/kernels/native/lanes.h"

#include "services/common/kernels/native/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
// NOLINTNEXTLINE(readability-identifier-naming)
#define HWY_TARGET_INCLUDE "services/common/kernels/native/lanes.cc"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <algorithm>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/kernels/native/simd/simd-inl.h"

#ifndef ADAMANT_KERNELS_LANE_MATRICES
#define ADAMANT_KERNELS_LANE_MATRICES
namespace adamant::kernels::internal {

/// `count` matrices of a block, each [kLanes examples, columns] on one side and [columns, kLanes]
/// on the other. Steps count floats.
struct LaneMatrices {
  std::int64_t count;
  std::int64_t columns;
  std::int64_t examples;     // that exist
  std::int64_t row_matrix;   // on the side of rows, from one matrix to the next
  std::int64_t row_example;  // and from one example to the next
  std::int64_t lane_matrix;  // on the side of lanes
  std::int64_t lane_column;
};

}  // namespace adamant::kernels::internal
#endif

HWY_BEFORE_NAMESPACE();
namespace adamant::kernels::internal::HWY_NAMESPACE {

/// A side of a square tile: its first row, the step to the next, and how many are there.
template <class Pointer>
struct TileSide {
  Pointer at;
  std::int64_t step;
  std::int64_t rows;
};

/// Transposes N x N. Rows that `from` lacks count as zeros, those that `to` lacks are left out.
/// Each round joins neighbours, even elements to the first half and odd ones to the second; as many
/// rounds as N has halves bring every element to its place.
template <std::int64_t N>
HWY_INLINE void TransposeTile(TileSide<const float*> from, TileSide<float*> to) {
  const hn::CappedTag<float, N> d;
  hn::Vec<decltype(d)> rows[N];
  HWY_UNROLL(16)
  for (std::int64_t i = 0; i < N; ++i) {
    rows[i] = i < from.rows ? hn::LoadU(d, from.at + i * from.step) : hn::Zero(d);
  }
  if constexpr (N > 1) {
    HWY_UNROLL(4)
    for (std::int64_t round = 1; round < N; round *= 2) {
      hn::Vec<decltype(d)> next[N];
      HWY_UNROLL(8)
      for (std::int64_t i = 0; i < N / 2; ++i) {
        next[i] = JoinEven(d, rows[2 * i + 1], rows[2 * i]);
        next[i + N / 2] = JoinOdd(d, rows[2 * i + 1], rows[2 * i]);
      }
      HWY_UNROLL(16)
      for (std::int64_t i = 0; i < N; ++i) {
        rows[i] = next[i];
      }
    }
  }
  HWY_UNROLL(16)
  for (std::int64_t i = 0; i < N; ++i) {
    if (i < to.rows) {
      hn::StoreU(rows[i], d, to.at + i * to.step);
    }
  }
}

/// Columns from `column` on: tiles of N while these fit, the rest by smaller ones.
template <std::int64_t N>
void InterleaveColumns(const LaneMatrices& m,
                       std::int64_t column,
                       const float* rows,
                       float* lanes) {
  for (; column + N <= m.columns; column += N) {
    for (std::int64_t example = 0; example < kLanes; example += N) {
      const std::int64_t exist = std::clamp<std::int64_t>(m.examples - example, 0, N);
      TransposeTile<N>({rows + example * m.row_example + column, m.row_example, exist},
                       {lanes + column * m.lane_column + example, m.lane_column, N});
    }
  }
  if constexpr (N > 1) {
    InterleaveColumns<N / 2>(m, column, rows, lanes);
  }
}

template <std::int64_t N>
void SeparateColumns(const LaneMatrices& m, std::int64_t column, const float* lanes, float* rows) {
  for (; column + N <= m.columns; column += N) {
    for (std::int64_t example = 0; example < kLanes; example += N) {
      const std::int64_t exist = std::clamp<std::int64_t>(m.examples - example, 0, N);
      TransposeTile<N>({lanes + column * m.lane_column + example, m.lane_column, N},
                       {rows + example * m.row_example + column, m.row_example, exist});
    }
  }
  if constexpr (N > 1) {
    SeparateColumns<N / 2>(m, column, lanes, rows);
  }
}

void Interleave(const LaneMatrices& m, const float* rows, float* lanes) {
  for (std::int64_t i = 0; i < m.count; ++i, rows += m.row_matrix, lanes += m.lane_matrix) {
    InterleaveColumns<kVector>(m, 0, rows, lanes);
  }
}

void Separate(const LaneMatrices& m, const float* lanes, float* rows) {
  for (std::int64_t i = 0; i < m.count; ++i, rows += m.row_matrix, lanes += m.lane_matrix) {
    SeparateColumns<kVector>(m, 0, lanes, rows);
  }
}

}  // namespace adamant::kernels::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace adamant::kernels {
namespace internal {
namespace {

HWY_EXPORT(Interleave);
HWY_EXPORT(Separate);

/// The matrices of the block that begins with example `first`. Channels first, one matrix holds all
/// elements; channels last, each pixel's channels are one.
LaneMatrices BlockOf(const LaneShape& s, MapLayout layout, std::int64_t first) {
  ADAMANT_CHECK(layout != MapLayout::kBatchInnermost && s.batch % kLanes == 0,
                "rows of examples and whole blocks");
  const std::int64_t features = s.channels * s.plane;
  const std::int64_t examples = std::clamp<std::int64_t>(s.rows - first, 0, kLanes);
  if (layout == MapLayout::kChannelsFirst) {
    return {1, features, examples, 0, features, 0, kLanes};
  }
  return {s.plane, s.channels, examples, s.channels, features, kLanes, s.plane * kLanes};
}

}  // namespace
}  // namespace internal

void ToBatchInnermost(const LaneShape& shape, MapLayout layout, const float* from, float* to) {
  const std::int64_t features = shape.channels * shape.plane;
  for (std::int64_t first = 0; first < shape.batch; first += kLanes) {
    HWY_DYNAMIC_DISPATCH(internal::Interleave)
    (internal::BlockOf(shape, layout, first), from + first * features, to + first * features);
  }
}

void FromBatchInnermost(const LaneShape& shape, MapLayout layout, const float* from, float* to) {
  const std::int64_t features = shape.channels * shape.plane;
  for (std::int64_t first = 0; first < shape.batch; first += kLanes) {
    HWY_DYNAMIC_DISPATCH(internal::Separate)
    (internal::BlockOf(shape, layout, first), from + first * features, to + first * features);
  }
}

}  // namespace adamant::kernels
#endif
