#include "services/common/kernels/hogwild.h"

#include "services/common/base/check.h"
#include "services/common/base/races.h"
#include "services/common/base/system/multiversion.h"

namespace adamant::kernels {
namespace {

ADAMANT_MULTIVERSION ADAMANT_RACES void Axpy(std::size_t count,
                                             float scale,
                                             const float* __restrict x,
                                             float* __restrict y) {
  for (std::size_t i = 0; i < count; ++i) {
    y[i] += scale * x[i];
  }
}

ADAMANT_MULTIVERSION ADAMANT_RACES void Add(std::size_t count,
                                            const float* __restrict x,
                                            float* __restrict y) {
  for (std::size_t i = 0; i < count; ++i) {
    y[i] += x[i];
  }
}

ADAMANT_MULTIVERSION ADAMANT_RACES void Copy(std::size_t count,
                                             const float* __restrict x,
                                             float* __restrict y) {
  for (std::size_t i = 0; i < count; ++i) {
    y[i] = x[i];
  }
}

}  // namespace

void HogwildAdd(std::span<float> shared, std::span<const float> delta) {
  ADAMANT_CHECK(shared.size() == delta.size(), "one change per weight");
  Add(shared.size(), delta.data(), shared.data());
}

void HogwildAxpy(std::span<float> shared, float scale, std::span<const float> x) {
  ADAMANT_CHECK(shared.size() == x.size(), "one change per weight");
  Axpy(shared.size(), scale, x.data(), shared.data());
}

void HogwildStore(std::span<float> shared, std::span<const float> values) {
  ADAMANT_CHECK(shared.size() == values.size(), "one value per weight");
  Copy(values.size(), values.data(), shared.data());
}

void HogwildLoad(std::span<const float> shared, std::span<float> values) {
  ADAMANT_CHECK(shared.size() == values.size(), "one place per weight");
  Copy(shared.size(), shared.data(), values.data());
}

}  // namespace adamant::kernels
