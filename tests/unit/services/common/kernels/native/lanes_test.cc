#include "services/common/kernels/native/lanes.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "services/common/kernels/isa.h"

namespace adamant::kernels {
namespace {

class LanesTest : public testing::TestWithParam<std::string> {
 protected:
  LanesTest() : isa_(GetParam()) {}

  static std::size_t PlaceInRows(const LaneShape& s,
                                 MapLayout layout,
                                 std::int64_t row,
                                 std::int64_t channel,
                                 std::int64_t pixel) {
    const std::int64_t element = layout == MapLayout::kChannelsFirst ? channel * s.plane + pixel
                                                                     : pixel * s.channels + channel;
    return static_cast<std::size_t>(row * s.channels * s.plane + element);
  }

  /// There and back again, with every element looked at on the way.
  static void Check(const LaneShape& s, MapLayout layout) {
    const std::int64_t features = s.channels * s.plane;
    std::vector<float> rows(static_cast<std::size_t>(s.batch * features));
    std::iota(rows.begin(), rows.end(), 1.0f);
    std::vector<float> lanes(rows.size(), -1);
    ToBatchInnermost(s, layout, rows.data(), lanes.data());
    std::vector<float> expected = rows;
    for (std::int64_t row = 0; row < s.batch; ++row) {
      for (std::int64_t c = 0; c < s.channels; ++c) {
        for (std::int64_t p = 0; p < s.plane; ++p) {
          const std::size_t place = PlaceInRows(s, layout, row, c, p);
          const std::int64_t block = row / kLanes * kLanes * features;
          const float lane = lanes[block + (c * s.plane + p) * kLanes + row % kLanes];
          ASSERT_EQ(lane, row < s.rows ? rows[place] : 0) << row << ' ' << c << ' ' << p;
          if (row >= s.rows) {
            expected[place] = -2;
          }
        }
      }
    }
    std::vector<float> back(rows.size(), -2);
    FromBatchInnermost(s, layout, lanes.data(), back.data());
    EXPECT_EQ(back, expected);
  }

  const ScopedIsa isa_;
};

INSTANTIATE_TEST_SUITE_P(Isas, LanesTest, testing::ValuesIn(SupportedIsas()));

TEST_P(LanesTest, EveryElementMovesToItsPlaceAndBack) {
  for (const MapLayout layout : {MapLayout::kChannelsFirst, MapLayout::kChannelsLast}) {
    for (const std::int64_t channels : {1, 2, 3, 10, 16, 17, 31, 48}) {
      for (const std::int64_t plane : {1, 5, 32}) {
        Check({.batch = 32, .channels = channels, .plane = plane, .rows = 32}, layout);
      }
    }
  }
}

TEST_P(LanesTest, ExamplesThatDoNotExistBecomeZerosAndAreNotWritten) {
  for (const MapLayout layout : {MapLayout::kChannelsFirst, MapLayout::kChannelsLast}) {
    for (const std::int64_t rows : {0, 1, 7, 15, 16, 21, 31}) {
      Check({.batch = 32, .channels = 19, .plane = 3, .rows = rows}, layout);
    }
  }
}

}  // namespace
}  // namespace adamant::kernels
