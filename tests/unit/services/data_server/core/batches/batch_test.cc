#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "services/common/base/rng.h"
#include "services/data_server/core/batches/batch_builder.h"
#include "services/data_server/core/batches/transform.h"

namespace adamant::data_server {
namespace {

constexpr ImageShape kShape{.channels = 1, .height = 5, .width = 5};

std::vector<std::uint8_t> Dot(std::uint32_t y, std::uint32_t x) {
  std::vector<std::uint8_t> image(25);
  image[y * 5 + x] = 200;
  return image;
}

std::vector<std::uint8_t> Apply(const InverseMap& map, const std::vector<std::uint8_t>& image) {
  std::vector<std::uint8_t> out(image.size(), 77);
  Resample(map, kShape, image, out);
  return out;
}

TEST(TransformTest, NothingToDoLeavesTheImage) {
  std::vector<std::uint8_t> image(25);
  std::iota(image.begin(), image.end(), std::uint8_t{100});
  EXPECT_FALSE(TransformOptions{}.any());
  EXPECT_EQ(Apply(DrawMap({}, kShape, 5), image), image);
}

TEST(TransformTest, ShiftByWholePixelsMovesThemAndFillsWithZero) {
  // The output's pixel (y, x) comes from (y - 1, x + 2): the dot moves down and left.
  EXPECT_EQ(Apply({.x0 = 2, .y0 = -1}, Dot(1, 3)), Dot(2, 1));
  EXPECT_EQ(Apply({.x0 = 2, .y0 = -1}, Dot(1, 1)), std::vector<std::uint8_t>(25));
}

TEST(TransformTest, ShiftByHalfAPixelSpreadsTheValue) {
  const std::vector<std::uint8_t> out = Apply({.x0 = 0.5}, Dot(2, 2));
  EXPECT_EQ(out[2 * 5 + 1], 100);
  EXPECT_EQ(out[2 * 5 + 2], 100);
  EXPECT_EQ(std::accumulate(out.begin(), out.end(), 0), 200);
}

TEST(TransformTest, FlipMirrorsAboutTheCentreHalfOfTheTime) {
  int mirrored = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const std::vector<std::uint8_t> out = Apply(DrawMap({.flip = true}, kShape, seed), Dot(1, 0));
    EXPECT_TRUE(out == Dot(1, 0) || out == Dot(1, 4));
    mirrored += out == Dot(1, 4) ? 1 : 0;
  }
  EXPECT_GT(mirrored, 430);
  EXPECT_LT(mirrored, 570);
}

TEST(TransformTest, RotationKeepsTheCentreAndStaysWithinItsAngle) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const InverseMap map = DrawMap({.rotate_degrees = 30}, kShape, seed);
    EXPECT_NEAR(map.xx * 2 + map.xy * 2 + map.x0, 2, 1e-9);
    EXPECT_NEAR(map.yx * 2 + map.yy * 2 + map.y0, 2, 1e-9);
    EXPECT_GE(map.xx, 0.866);
    EXPECT_NEAR(map.xx * map.yy - map.xy * map.yx, 1, 1e-9);
  }
}

TEST(TransformTest, ScaleAndShiftStayWithinTheirBounds) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const InverseMap scaled = DrawMap({.scale = 0.25}, kShape, seed);
    EXPECT_GE(scaled.xx, 1 / 1.25);
    EXPECT_LE(scaled.xx, 1 / 0.75);
    const InverseMap shifted = DrawMap({.translate_pixels = 2}, kShape, seed);
    EXPECT_LE(std::abs(shifted.x0), 2);
    EXPECT_LE(std::abs(shifted.y0), 2);
    EXPECT_DOUBLE_EQ(shifted.xx, 1);
  }
}

BatchBuilder::SharedDataset MakeSet(std::uint32_t examples, std::uint32_t channels) {
  dataset::Dataset set{.channels = channels, .height = 3, .width = 2, .images = {}, .labels = {}};
  for (std::uint32_t i = 0; i < examples; ++i) {
    set.labels.push_back(static_cast<std::uint8_t>(i));
    set.images.insert(set.images.end(), set.example_bytes(), static_cast<std::uint8_t>(i));
  }
  return std::make_shared<const dataset::Dataset>(std::move(set));
}

TEST(BatchBuilderTest, BatchesOfAllPartsHoldEachExampleOnceWithItsLabel) {
  const auto train = MakeSet(53, 2);
  const BatchBuilder builder({.parts = 3, .batch_size = 4}, train, MakeSet(9, 2));
  const PartLayout layout(53, 3, 4);
  const std::vector<std::uint32_t> order = EpochOrder(1, 2, 53);
  std::vector<int> seen(53);
  for (std::uint32_t part = 0; part < 3; ++part) {
    for (std::uint32_t index = 0; index < layout.Batches(part); ++index) {
      const PreparedBatch batch = builder.Build({.epoch = 2, .part = part, .index = index}, order);
      ASSERT_EQ(batch.images.size(), batch.labels.size() * 12);
      EXPECT_LE(batch.own_bytes, builder.max_batch_bytes());
      for (std::size_t i = 0; i < batch.labels.size(); ++i) {
        ++seen.at(batch.labels[i]);
        EXPECT_EQ(batch.images[i * 12], batch.labels[i]);
        EXPECT_EQ(batch.images[i * 12 + 11], batch.labels[i]);
      }
    }
  }
  EXPECT_EQ(seen, std::vector<int>(53, 1));
}

TEST(BatchBuilderTest, ValidationBatchesPointIntoTheSetInOrder) {
  const auto validation = MakeSet(9, 1);
  const BatchBuilder builder({.batch_size = 4}, MakeSet(5, 1), validation);
  const PreparedBatch last = builder.Build({.kind = WorkKind::kEvaluate, .index = 2}, {});
  EXPECT_EQ(last.labels, (std::vector<std::uint8_t>{8}));
  EXPECT_EQ(last.images.data(), validation->image(8).data());
  EXPECT_EQ(last.own_bytes, 0u);
}

TEST(BatchBuilderTest, TransformedExampleDependsOnSeedEpochAndExampleAlone) {
  const auto train = MakeSet(12, 1);
  const TransformOptions transforms{.translate_pixels = 1, .rotate_degrees = 40};
  // By example, whatever the part and place it is dispatched in.
  const auto images = [&](std::uint32_t parts, std::uint64_t seed, DataEpoch epoch) {
    const BatchBuilder builder(
        {.seed = seed, .parts = parts, .batch_size = 3, .transforms = transforms}, train, train);
    const PartLayout layout(12, parts, 3);
    const std::vector<std::uint32_t> order = EpochOrder(parts, epoch, 12);
    std::map<std::uint8_t, std::vector<std::uint8_t>> by_label;
    for (std::uint32_t part = 0; part < parts; ++part) {
      for (std::uint32_t index = 0; index < layout.Batches(part); ++index) {
        const PreparedBatch batch =
            builder.Build({.epoch = epoch, .part = part, .index = index}, order);
        for (std::size_t i = 0; i < batch.labels.size(); ++i) {
          const auto image = batch.images.subspan(i * 6, 6);
          by_label[batch.labels[i]] = {image.begin(), image.end()};
        }
      }
    }
    return by_label;
  };
  EXPECT_EQ(images(1, 5, 1), images(3, 5, 1));
  EXPECT_NE(images(1, 5, 1), images(1, 6, 1));
  EXPECT_NE(images(1, 5, 1), images(1, 5, 2));
}

}  // namespace
}  // namespace adamant::data_server
