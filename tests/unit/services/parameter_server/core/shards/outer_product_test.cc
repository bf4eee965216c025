#include "services/parameter_server/core/shards/outer_product.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "services/common/base/rng.h"

namespace adamant::parameter_server {
namespace {

std::vector<float> Random(Rng& rng, std::size_t n) {
  std::vector<float> values(n);
  for (float& value : values) {
    value = static_cast<float>(rng.Normal());
  }
  return values;
}

struct Layer {
  Layer(Rng& rng, std::uint32_t rows, std::uint32_t inputs, std::uint32_t outputs)
      : activations(Random(rng, std::size_t{rows} * inputs)),
        errors(Random(rng, std::size_t{rows} * outputs)),
        operands{.rows = rows,
                 .inputs = inputs,
                 .outputs = outputs,
                 .activations = activations,
                 .errors = errors} {}

  std::vector<float> activations;
  std::vector<float> errors;
  Operands operands;
};

TEST(OuterProductTest, EqualsTheSumsInDoublePrecisionWithinRounding) {
  Rng rng(1);
  const std::uint32_t sizes[][3] = {{1, 1, 1},
                                    {3, 5, 2},
                                    {8, 16, 4},
                                    {8, 17, 5},
                                    {32, 33, 7},
                                    {16, 100, 9},
                                    {5, 64, 64},
                                    {64, 7, 300}};
  for (const auto& [rows, inputs, outputs] : sizes) {
    const Layer layer(rng, rows, inputs, outputs);
    std::vector<float> gradient(std::size_t{inputs} * outputs, -1);
    OuterProduct(layer.operands, 0, gradient);
    for (std::uint32_t o = 0; o < outputs; ++o) {
      for (std::uint32_t i = 0; i < inputs; ++i) {
        double sum = 0;
        for (std::uint32_t n = 0; n < rows; ++n) {
          sum += double{layer.errors[n * outputs + o]} * layer.activations[n * inputs + i];
        }
        ASSERT_NEAR(gradient[o * inputs + i], sum, 1e-4) << rows << " " << o << " " << i;
      }
    }
  }
}

TEST(OuterProductTest, AnyRangeHasTheBitsOfTheWhole) {
  Rng rng(2);
  const Layer layer(rng, 9, 53, 31);
  std::vector<float> whole(std::size_t{53} * 31);
  OuterProduct(layer.operands, 0, whole);
  for (int round = 0; round < 500; ++round) {
    const std::size_t begin = rng.Below(whole.size());
    const std::size_t size = rng.Below(whole.size() - begin + 1);
    std::vector<float> range(size);
    OuterProduct(layer.operands, begin, range);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(range[i]),
                std::bit_cast<std::uint32_t>(whole[begin + i]))
          << begin << " " << size << " " << i;
    }
  }
}

}  // namespace
}  // namespace adamant::parameter_server
