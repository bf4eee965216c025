#include "services/worker/rpc/stream_endings.h"

#include <gtest/gtest.h>

namespace adamant::worker {
namespace {

using std::chrono::milliseconds;

TEST(StreamEndingsTest, ManyInARowAreAWarningAndToldMoreAndMoreSeldom) {
  StreamEndings endings;
  for (std::uint32_t i = 1; i < StreamEndings::kMany; ++i) {
    EXPECT_EQ(endings.OnEnd(milliseconds(10)), LogLevel::kInfo);
  }
  int told = 0;
  for (int i = 0; i < 1000; ++i) {
    told += endings.OnEnd(milliseconds(10)) == LogLevel::kWarning ? 1 : 0;
  }
  EXPECT_EQ(told, 6) << "16, 32, 64, 128, 256, 512";
}

TEST(StreamEndingsTest, AStreamThatLastedBeginsAnew) {
  StreamEndings endings;
  for (int i = 0; i < 20; ++i) {
    endings.OnEnd(milliseconds(10));
  }
  EXPECT_EQ(endings.OnEnd(StreamEndings::kGood), LogLevel::kInfo);
  EXPECT_EQ(endings.row(), 1u);
  endings.OnEnd(milliseconds(10));
  EXPECT_EQ(endings.row(), 2u) << "the wait before the next grows";
}

}  // namespace
}  // namespace adamant::worker
