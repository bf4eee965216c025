// The operator dies at each of its writes to the API, right before it and right after it took
// effect: another one takes over, and the job ends as if nothing had happened.

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>

#include "services/common/base/log.h"
#include "tests/simulation/operator/run.h"

namespace adamant::orchestration {
namespace {

class KillPointsTest : public testing::TestWithParam<std::uint64_t> {};

TEST_P(KillPointsTest, NoDeathAtAWriteChangesWhatBecomesOfTheJob) {
  const std::uint64_t seed = GetParam();
  const Outcome undisturbed = RunWithCrash(seed, 0, false);
  ASSERT_EQ(undisturbed.violation, "") << undisturbed.story;
  ASSERT_EQ(undisturbed.phase, "Succeeded");
  std::map<std::string, int> kinds;
  for (std::size_t n = 1; n <= undisturbed.writes.size(); ++n) {
    ++kinds[undisturbed.writes[n - 1]];
    for (const bool after : {false, true}) {
      const Outcome outcome = RunWithCrash(seed, n, after);
      const std::string where = (after ? "after " : "before ") + undisturbed.writes[n - 1] +
                                ", write " + std::to_string(n) + " of seed " + std::to_string(seed);
      ASSERT_EQ(outcome.violation, "") << where << "\n" << outcome.story;
      EXPECT_EQ(outcome.phase, "Succeeded") << where;
      ASSERT_EQ(outcome.restarts, 0u) << where << "\n" << outcome.story;
    }
  }
  for (const auto& [kind, count] : kinds) {
    std::printf("  %3d times %s\n", count, kind.c_str());
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, KillPointsTest, testing::Values(1, 2, 3));

}  // namespace
}  // namespace adamant::orchestration

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  adamant::InitLog("operator-simulation", adamant::LogLevel::kError);
  return RUN_ALL_TESTS();
}
