#include "services/common/kernels/vector_ops.h"

#include <algorithm>

#include "services/common/base/check.h"
#include "services/common/base/system/multiversion.h"

namespace adamant::kernels {
namespace {

ADAMANT_MULTIVERSION __attribute__((noinline)) void Add(std::size_t count,
                                                        const float* __restrict x,
                                                        float* __restrict y) {
  for (std::size_t i = 0; i < count; ++i) {
    y[i] += x[i];
  }
}

}  // namespace

void AddTo(std::span<const float> x, std::span<float> y) {
  ADAMANT_CHECK(x.size() == y.size(), "sizes are equal");
  Add(x.size(), x.data(), y.data());
}

void SumRows(std::int64_t row_count, const float* rows, std::span<float> sums) {
  std::fill(sums.begin(), sums.end(), 0.0f);
  for (std::int64_t row = 0; row < row_count; ++row) {
    Add(sums.size(), rows + row * static_cast<std::int64_t>(sums.size()), sums.data());
  }
}

}  // namespace adamant::kernels
