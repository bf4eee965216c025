#pragma once

#include <cstdint>
#include <span>

namespace adamant::kernels {

/// y[i] += x[i]; sizes equal, no overlap.
void AddTo(std::span<const float> x, std::span<float> y);

/// sums[j] = sum over i of rows[i][j], added in the order of i; rows is [row_count, sums.size()].
void SumRows(std::int64_t row_count, const float* rows, std::span<float> sums);

}  // namespace adamant::kernels
