#include "services/parameter_server/core/shards/outer_product.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "services/common/base/check.h"
#include "services/common/base/system/multiversion.h"

namespace adamant::parameter_server {
namespace {

/// A vector that may lie at any float's address; the compiler cuts it into what the CPU has.
constexpr std::size_t kLanes = 16;
using Lanes
    [[gnu::vector_size(kLanes * sizeof(float)), gnu::aligned(alignof(float)), gnu::may_alias]] =
        float;

constexpr std::size_t kTileRows = 8;
constexpr std::size_t kTileVectors = 2;
constexpr std::size_t kStripColumns = kTileVectors * kLanes;

/// A part of the product: whole columns of some rows.
struct Block {
  const float* errors;  ///< of the first row; the next row follows, the next n is `outputs` away
  const float* activations;  ///< of the first column; the next n is `inputs` away
  float* gradient;           ///< the next row is `inputs` away
  std::size_t n;
  std::size_t outputs;
  std::size_t inputs;
  std::size_t rows;
  std::size_t columns;
};

[[gnu::always_inline]] inline void Store(const Lanes (&sums)[kTileVectors], float* out) {
  for (std::size_t v = 0; v < kTileVectors; ++v) {
    *reinterpret_cast<Lanes*>(out + v * kLanes) = sums[v];
  }
}

/// Rows from `row` of a strip of columns, summed in registers. `strip` holds the activations of
/// kStripColumns columns, [n, kStripColumns], of which the first `columns` are wanted.
template <std::size_t kRows>
[[gnu::always_inline]] inline void Tile(
    const Block& block, const float* strip, std::size_t row, std::size_t columns, float* out) {
  Lanes sums[kRows][kTileVectors] = {};
  const float* errors = block.errors + row;
  for (std::size_t n = 0; n < block.n; ++n) {
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t v = 0; v < kTileVectors; ++v) {
        sums[r][v] += errors[r] * *reinterpret_cast<const Lanes*>(strip + v * kLanes);
      }
    }
    errors += block.outputs;
    strip += kStripColumns;
  }
  for (std::size_t r = 0; r < kRows; ++r, out += block.inputs) {
    if (columns == kStripColumns) {
      Store(sums[r], out);
    } else {
      float wide[kStripColumns];
      Store(sums[r], wide);
      std::copy_n(wide, columns, out);
    }
  }
}

/// The strip from `column`, packed, so that it stays in cache while all rows use it.
void Pack(const Block& block, std::size_t column, std::size_t columns, float* strip) {
  for (std::size_t n = 0; n < block.n; ++n) {
    std::copy_n(block.activations + n * block.inputs + column, columns, strip + n * kStripColumns);
  }
}

ADAMANT_MULTIVERSION_FUSED void Multiply(const Block& block, float* strip) {
  for (std::size_t column = 0; column < block.columns; column += kStripColumns) {
    const std::size_t columns = std::min(kStripColumns, block.columns - column);
    Pack(block, column, columns, strip);
    float* out = block.gradient + column;
    std::size_t row = 0;
    for (; row + kTileRows <= block.rows; row += kTileRows) {
      Tile<kTileRows>(block, strip, row, columns, out + row * block.inputs);
    }
    for (; row < block.rows; ++row) {
      Tile<1>(block, strip, row, columns, out + row * block.inputs);
    }
  }
}

}  // namespace

void OuterProduct(const Operands& operands, std::uint64_t begin, std::span<float> gradient) {
  const std::size_t inputs = operands.inputs;
  ADAMANT_CHECK(begin + gradient.size() <= inputs * operands.outputs,
                "the range lies within the matrix");
  std::vector<float> strip(operands.rows * kStripColumns);
  for (std::size_t done = 0; done < gradient.size();) {
    const std::size_t row = (begin + done) / inputs;
    const std::size_t column = (begin + done) % inputs;
    const std::size_t left = gradient.size() - done;
    // A part of the first row, then all whole rows at once, then a part of the last row.
    const bool whole = column == 0 && left >= inputs;
    const Block block{.errors = operands.errors.data() + row,
                      .activations = operands.activations.data() + column,
                      .gradient = gradient.data() + done,
                      .n = operands.rows,
                      .outputs = operands.outputs,
                      .inputs = inputs,
                      .rows = whole ? left / inputs : 1,
                      .columns = whole ? inputs : std::min(inputs - column, left)};
    Multiply(block, strip.data());
    done += block.rows * block.columns;
  }
}

}  // namespace adamant::parameter_server
