#include "services/common/dataset/digits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "services/common/base/rng.h"
#include "services/common/dataset/idx.h"
#include "tests/unit/services/common/dataset/temporary_folder.h"

namespace adamant::dataset {
namespace {

constexpr std::size_t kPixels = 784;
constexpr std::size_t kClasses = 10;

// Softmax regression, trained by plain SGD.
class LinearClassifier {
 public:
  void Train(const Dataset& set, int epochs) {
    Rng rng(5);
    std::vector<std::size_t> order(set.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (int epoch = 0; epoch < epochs; ++epoch) {
      const float rate = 0.05f * (1.0f - static_cast<float>(epoch) / static_cast<float>(epochs));
      for (std::size_t i = order.size() - 1; i > 0; --i) {
        std::swap(order[i], order[rng.Below(i + 1)]);
      }
      for (const std::size_t i : order) {
        Step(set.image(i), set.labels[i], rate);
      }
    }
  }

  [[nodiscard]] double Accuracy(const Dataset& set) {
    std::size_t right = 0;
    for (std::size_t i = 0; i < set.size(); ++i) {
      const std::array<float, kClasses> scores = Scores(set.image(i));
      const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
      right += best == set.labels[i] ? 1 : 0;
    }
    return static_cast<double>(right) / static_cast<double>(set.size());
  }

 private:
  std::array<float, kClasses> Scores(std::span<const std::uint8_t> image) {
    std::transform(image.begin(), image.end(), x_.begin(), [](std::uint8_t p) {
      return static_cast<float>(p) / 255.0f;
    });
    std::array<float, kClasses> scores = biases_;
    for (std::size_t p = 0; p < kPixels; ++p) {
      if (x_[p] != 0) {
        for (std::size_t c = 0; c < kClasses; ++c) {
          scores[c] += weights_[p][c] * x_[p];
        }
      }
    }
    return scores;
  }

  void Step(std::span<const std::uint8_t> image, std::uint8_t label, float rate) {
    std::array<float, kClasses> change = Scores(image);
    const float largest = *std::max_element(change.begin(), change.end());
    float sum = 0;
    for (float& value : change) {
      value = std::exp(value - largest);
      sum += value;
    }
    for (std::size_t c = 0; c < kClasses; ++c) {
      change[c] = rate * (change[c] / sum - (c == label ? 1.0f : 0.0f));
      biases_[c] -= change[c];
    }
    for (std::size_t p = 0; p < kPixels; ++p) {
      if (x_[p] != 0) {
        for (std::size_t c = 0; c < kClasses; ++c) {
          weights_[p][c] -= change[c] * x_[p];
        }
      }
    }
  }

  std::array<std::array<float, kClasses>, kPixels> weights_ = {};
  std::array<float, kClasses> biases_ = {};
  std::array<float, kPixels> x_ = {};
};

TEST(DigitsTest, ExampleDependsOnSeedAndIndexAlone) {
  const Dataset one = GenerateDigits({.seed = 9, .examples = 1200, .threads = 1});
  const Dataset many = GenerateDigits({.seed = 9, .examples = 1700, .threads = 4});
  EXPECT_TRUE(std::equal(one.images.begin(), one.images.end(), many.images.begin()));
  EXPECT_TRUE(std::equal(one.labels.begin(), one.labels.end(), many.labels.begin()));
  const Dataset other = GenerateDigits({.seed = 10, .examples = 1200, .threads = 1});
  EXPECT_NE(one.images, other.images);
  EXPECT_NE(one.labels, other.labels);
}

TEST(DigitsTest, ImagesHaveInkAndRoomAndEveryClassIsThere) {
  const Dataset set = GenerateDigits({.seed = 2, .examples = 2000});
  ASSERT_EQ(set.images.size(), 2000 * kPixels);
  std::array<int, kClasses> counts = {};
  for (std::size_t i = 0; i < set.size(); ++i) {
    ASSERT_LT(set.labels[i], kClasses);
    ++counts[set.labels[i]];
    const auto image = set.image(i);
    const auto ink = std::count_if(image.begin(), image.end(), [](auto p) { return p > 96; });
    EXPECT_GT(ink, 8) << i;
    EXPECT_LT(ink, 400) << i;
  }
  for (const int count : counts) {
    EXPECT_GT(count, 140);
  }
}

TEST(DigitsTest, LinearClassifierLearnsThemButStaysBelow93Percent) {
  const Dataset train = GenerateDigits({.seed = 11, .examples = 10000});
  const Dataset test = GenerateDigits({.seed = 12, .examples = 2000});
  LinearClassifier classifier;
  classifier.Train(train, 12);
  const double accuracy = classifier.Accuracy(test);
  EXPECT_LT(accuracy, 0.93);
  EXPECT_GT(accuracy, 0.80);
  RecordProperty("accuracy_percent", static_cast<int>(accuracy * 100));
}

TEST(DigitsTest, WrittenFilesAreReadBackAndHoldDifferentSets) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/new/digits";
  std::uint64_t reported = 0;
  ASSERT_TRUE(
      WriteDigits(
          path,
          {.seed = 4, .validation_seed = 5, .train_examples = 600, .validation_examples = 100},
          [&](std::uint64_t done, std::uint64_t total) {
            EXPECT_GE(done, reported);
            EXPECT_EQ(total, 700u);
            reported = done;
          })
          .ok());
  EXPECT_EQ(reported, 700u);
  const Dataset train = ReadIdx(MnistPaths(path, "train"), {.classes = 10}).value();
  const Dataset validation = ReadIdx(MnistPaths(path, "t10k"), {.classes = 10}).value();
  EXPECT_EQ(train.size(), 600u);
  ASSERT_EQ(validation.size(), 100u);
  EXPECT_EQ(train.images, GenerateDigits({.seed = 4, .examples = 600}).images);
  EXPECT_EQ(validation.images, GenerateDigits({.seed = 5, .examples = 100}).images);
}

}  // namespace
}  // namespace adamant::dataset
