#include "services/common/kernels/hogwild.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace adamant::kernels {
namespace {

TEST(HogwildTest, EachFunctionDoesWhatItSaysAtAnySizeAndAlignment) {
  for (const std::size_t size : {0u, 1u, 15u, 16u, 17u, 1000u}) {
    for (const std::size_t offset : {0u, 1u, 3u}) {
      std::vector<float> memory(size + offset + 1, 1.0f);
      const std::span<float> shared = std::span(memory).subspan(offset, size);
      std::vector<float> values(size);
      for (std::size_t i = 0; i < size; ++i) {
        values[i] = static_cast<float>(i);
      }
      HogwildStore(shared, values);
      HogwildAdd(shared, values);
      HogwildAxpy(shared, 0.5f, values);
      std::vector<float> read(size);
      HogwildLoad(shared, read);
      for (std::size_t i = 0; i < size; ++i) {
        EXPECT_EQ(read[i], 2.5f * static_cast<float>(i));
      }
      EXPECT_EQ(memory.back(), 1.0f) << "wrote beyond the end";
    }
  }
}

TEST(HogwildTest, RacingThreadsLoseUpdatesButNeverTearValues) {
  constexpr std::size_t kSize = 4096;
  constexpr int kRounds = 200;
  std::vector<float> shared(kSize, 0.0f);
  const auto add = [&] {
    const std::vector<float> delta(kSize, 1.0f);
    std::vector<float> read(kSize);
    for (int round = 0; round < kRounds; ++round) {
      HogwildAdd(shared, delta);
      HogwildLoad(shared, read);
      for (const float value : read) {
        ASSERT_EQ(value, static_cast<float>(static_cast<int>(value)));
        ASSERT_GE(value, 1.0f);
        ASSERT_LE(value, 2.0f * kRounds);
      }
    }
  };
  std::thread other(add);
  add();
  other.join();
  for (const float value : shared) {
    EXPECT_GE(value, static_cast<float>(kRounds) / 4);
  }
}

}  // namespace
}  // namespace adamant::kernels
