#include "services/parameter_server/core/outer_product.h"

#include <algorithm>
#include <cstddef>

#include "services/common/base/check.h"
#include "services/common/optimiser/multiversion.h"

namespace adamant::parameter_server {
namespace {

/// A vector that may lie at any float's address; the compiler cuts it into what the CPU has.
constexpr std::size_t kLanes = 16;
using Lanes
    [[gnu::vector_size(kLanes * sizeof(float)), gnu::aligned(alignof(float)), gnu::may_alias]] =
        float;

/// A block of whole columns of some rows: gradient[r * stride + c] for r < rows, c < columns.
struct Block {
  const float* errors;  ///< of the first row; the next row follows, the next n is `outputs` away
  const float* activations;  ///< of the first column; the next n is `inputs` away
  float* gradient;
  std::size_t n;
  std::size_t outputs;
  std::size_t inputs;  ///< also the distance between two rows of `gradient`
};

/// kRows x kVectors vectors are summed in registers.
template <std::size_t kRows, std::size_t kVectors>
[[gnu::always_inline]] inline void Tile(const Block& block, std::size_t row, std::size_t column) {
  Lanes sums[kRows][kVectors] = {};
  const float* errors = block.errors + row;
  const float* activations = block.activations + column;
  for (std::size_t n = 0; n < block.n; ++n) {
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t v = 0; v < kVectors; ++v) {
        sums[r][v] += errors[r] * *reinterpret_cast<const Lanes*>(activations + v * kLanes);
      }
    }
    errors += block.outputs;
    activations += block.inputs;
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      float* out = block.gradient + (row + r) * block.inputs + column + v * kLanes;
      *reinterpret_cast<Lanes*>(out) = sums[r][v];
    }
  }
}

/// The columns that fill no vector.
[[gnu::always_inline]] inline void Tail(const Block& block,
                                        std::size_t row,
                                        std::size_t column,
                                        std::size_t columns) {
  float sums[kLanes] = {};
  for (std::size_t n = 0; n < block.n; ++n) {
    const float error = block.errors[n * block.outputs + row];
    for (std::size_t c = column; c < columns; ++c) {
      sums[c - column] += error * block.activations[n * block.inputs + c];
    }
  }
  std::copy_n(sums, columns - column, block.gradient + row * block.inputs + column);
}

/// Columns outside, so that a strip of the activations stays in cache while all rows use it.
ADAMANT_MULTIVERSION void Multiply(const Block& block, std::size_t rows, std::size_t columns) {
  constexpr std::size_t kRows = 4;
  constexpr std::size_t kVectors = 2;
  std::size_t column = 0;
  for (; column + kVectors * kLanes <= columns; column += kVectors * kLanes) {
    std::size_t row = 0;
    for (; row + kRows <= rows; row += kRows) {
      Tile<kRows, kVectors>(block, row, column);
    }
    for (; row < rows; ++row) {
      Tile<1, kVectors>(block, row, column);
    }
  }
  for (; column + kLanes <= columns; column += kLanes) {
    for (std::size_t row = 0; row < rows; ++row) {
      Tile<1, 1>(block, row, column);
    }
  }
  for (std::size_t row = 0; column < columns && row < rows; ++row) {
    Tail(block, row, column, columns);
  }
}

}  // namespace

void OuterProduct(const Operands& operands, std::uint64_t begin, std::span<float> gradient) {
  const std::size_t inputs = operands.inputs;
  const std::size_t outputs = operands.outputs;
  ADAMANT_CHECK(begin + gradient.size() <= inputs * outputs, "the range lies within the matrix");
  for (std::size_t done = 0; done < gradient.size();) {
    const std::size_t row = (begin + done) / inputs;
    const std::size_t column = (begin + done) % inputs;
    const std::size_t left = gradient.size() - done;
    // A part of the first row, then all whole rows at once, then a part of the last row.
    const bool whole = column == 0 && left >= inputs;
    const std::size_t rows = whole ? left / inputs : 1;
    const std::size_t columns = whole ? inputs : std::min(inputs - column, left);
    Multiply({.errors = operands.errors.data() + row,
              .activations = operands.activations.data() + column,
              .gradient = gradient.data() + done,
              .n = operands.rows,
              .outputs = outputs,
              .inputs = inputs},
             rows,
             columns);
    done += rows * columns;
  }
}

}  // namespace adamant::parameter_server
