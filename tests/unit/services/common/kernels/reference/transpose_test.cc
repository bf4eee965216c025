#include "services/common/kernels/reference/transpose.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "services/common/kernels/vector_ops.h"

namespace adamant::kernels {
namespace {

void ExpectTransposed(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kBatch = 3;
  std::vector<int> from(static_cast<std::size_t>(kBatch * rows * columns));
  std::iota(from.begin(), from.end(), 0);
  std::vector<int> to(from.size());
  Transpose(kBatch, rows, columns, from.data(), to.data());
  for (std::int64_t n = 0; n < kBatch; ++n) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        ASSERT_EQ(to[(n * columns + j) * rows + i], from[(n * rows + i) * columns + j]);
      }
    }
  }
}

TEST(TransposeTest, EveryElementMovesToItsPlace) {
  for (const std::int64_t rows : {1, 2, 16, 17, 40}) {
    for (const std::int64_t columns : {1, 5, 16, 33}) {
      ExpectTransposed(rows, columns);
    }
  }
}

TEST(VectorOpsTest, SumRowsAddsColumnsOfAnyWidth) {
  for (const std::size_t width : {1u, 7u, 16u, 33u}) {
    std::vector<float> rows(3 * width);
    std::iota(rows.begin(), rows.end(), 0.0f);
    std::vector<float> sums(width, -1.0f);
    SumRows(3, rows.data(), sums);
    AddTo(sums, std::span(rows).first(width));
    for (std::size_t j = 0; j < width; ++j) {
      EXPECT_EQ(sums[j], static_cast<float>(3 * j + 3 * width));
      EXPECT_EQ(rows[j], static_cast<float>(j) + sums[j]);
    }
  }
}

}  // namespace
}  // namespace adamant::kernels
