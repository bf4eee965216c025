// Where threads run, and how far apart.

#include <gtest/gtest.h>

#include <thread>

#include "services/common/base/system/cache_line_ping.h"
#include "services/common/base/system/thread_affinity.h"

namespace adamant {
namespace {

TEST(ThreadAffinityTest, APinnedThreadHasOneCpuAndLeavesOthersTheirs) {
  const std::size_t usable = UsableCpus();
  ASSERT_GE(usable, 1u);
  for (const std::size_t index : {std::size_t{0}, usable - 1, usable, std::size_t{1000}}) {
    std::jthread pinned([index] {
      EXPECT_TRUE(PinThread(index).ok());
      EXPECT_EQ(UsableCpus(), 1u);
    });
  }
  EXPECT_EQ(UsableCpus(), usable);
}

TEST(CacheLinePingTest, ALineTakesSomeTimeButNotTheWholeTimeout) {
  if (const auto ping = CacheLinePing()) {
    EXPECT_GT(*ping, 1);
    EXPECT_LT(*ping, 1e7);
  }
}

TEST(CacheLinePingTest, OneCpuHasNobodyToPlayWith) {
  std::jthread alone([] {
    ASSERT_TRUE(PinThread(0).ok());
    EXPECT_EQ(CacheLinePing(), std::nullopt);
  });
}

}  // namespace
}  // namespace adamant
