#pragma once

#include <algorithm>
#include <cstdint>

namespace adamant::kernels {

/// Transposes `batch` matrices: [batch, rows, columns] to [batch, columns, rows]. With rows =
/// channels and columns = height * width this turns channels first into channels last; swapped, it
/// turns it back. `from` and `to` do not overlap.
template <class T>
void Transpose(std::int64_t batch, std::int64_t rows, std::int64_t columns, const T* from, T* to) {
  constexpr std::int64_t kTile = 16;  // a tile of each side stays in the first cache
  for (std::int64_t n = 0; n < batch; ++n, from += rows * columns, to += rows * columns) {
    for (std::int64_t top = 0; top < rows; top += kTile) {
      const std::int64_t bottom = std::min(top + kTile, rows);
      for (std::int64_t column = 0; column < columns; ++column) {
        for (std::int64_t row = top; row < bottom; ++row) {
          to[column * rows + row] = from[row * columns + column];
        }
      }
    }
  }
}

}  // namespace adamant::kernels
