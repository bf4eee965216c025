#include "services/common/dataset/lazy_digits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace adamant::dataset {
namespace {

TEST(LazyDigitsTest, AreTheDigitsOfGenerateDigits) {
  const DigitsOptions options{.seed = 7, .examples = 60, .threads = 2};
  const Dataset expected = GenerateDigits(options);
  LazyDigits lazy(options);
  EXPECT_EQ(lazy.set()->labels, expected.labels) << "from the start";
  EXPECT_EQ(lazy.set()->most_frequent(), expected.most_frequent());
  for (std::uint64_t i = 0; i < options.examples; ++i) {
    lazy.Draw(i);
    EXPECT_TRUE(std::ranges::equal(lazy.set()->image(i), expected.image(i))) << i;
  }
}

TEST(LazyDigitsTest, OneDoesNotWaitForTheOthers) {
  constexpr std::uint64_t kExamples = 50'000;  // minutes of one thread
  LazyDigits lazy({.seed = 7, .examples = kExamples, .threads = 1});
  lazy.Draw(kExamples - 1);
  EXPECT_LT(lazy.drawn(), kExamples);
}

TEST(LazyDigitsTest, EachIsDrawnOnceWhoeverAsks) {
  const DigitsOptions options{.seed = 7, .examples = 40, .threads = 1};
  LazyDigits lazy(options);
  std::vector<std::jthread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&lazy, &options] {
      for (std::uint64_t i = options.examples; i-- > 0;) {
        lazy.Draw(i);
      }
    });
  }
  readers.clear();
  EXPECT_EQ(lazy.drawn(), options.examples);
}

TEST(LazyDigitsTest, TheOthersAreDrawnMeanwhile) {
  std::atomic<std::uint64_t> told = 0;
  {
    LazyDigits lazy({.seed = 7, .examples = 20, .threads = 1},
                    [&](std::uint64_t done, std::uint64_t /*total*/) {
                      told = done;
                      told.notify_all();
                    });
    told.wait(0);
  }
  EXPECT_EQ(told, 20u);
}

}  // namespace
}  // namespace adamant::dataset
