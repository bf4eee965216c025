// The operator dies at each of its writes to the API, right before it and right after it took
// effect: another one takes over, which may die too, and the job ends as if nothing had happened.

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "services/common/base/log.h"
#include "tests/simulation/operator/run.h"

namespace adamant::orchestration {
namespace {

constexpr std::size_t kFirstDeaths = 2;  // after which the successor's are tried

// Runs the job to its end, as if nobody had died, and returns what the last leader wrote.
std::vector<std::string> ExpectEndsUndisturbed(std::uint64_t seed,
                                               const std::vector<LeaderCrash>& crashes) {
  const Outcome outcome = RunWithCrashes(seed, crashes);
  std::string where = "seed " + std::to_string(seed);
  for (const LeaderCrash& crash : crashes) {
    where += (crash.after ? ", after write " : ", before write ") + std::to_string(crash.write);
  }
  EXPECT_EQ(outcome.violation, "") << where << "\n" << outcome.story;
  EXPECT_EQ(outcome.phase, "Succeeded") << where;
  EXPECT_EQ(outcome.restarts, 0u) << where << "\n" << outcome.story;
  return outcome.writes;
}

class KillPointsTest : public testing::TestWithParam<std::uint64_t> {};

TEST_P(KillPointsTest, NoDeathAtAWriteChangesWhatBecomesOfTheJob) {
  const std::vector<std::string> writes = ExpectEndsUndisturbed(GetParam(), {});
  std::map<std::string, int> kinds;
  for (std::size_t n = 1; n <= writes.size() && !HasFailure(); ++n) {
    ++kinds[writes[n - 1]];
    for (const bool after : {false, true}) {
      ExpectEndsUndisturbed(GetParam(), {{.write = n, .after = after}});
    }
  }
  for (const auto& [kind, count] : kinds) {
    std::printf("  %3d times %s\n", count, kind.c_str());
  }
}

TEST_P(KillPointsTest, NorDoesTheDeathOfItsSuccessor) {
  const std::size_t last = ExpectEndsUndisturbed(GetParam(), {}).size();
  std::size_t deaths = 0;
  for (std::size_t i = 0; i < kFirstDeaths; ++i) {
    const LeaderCrash first{.write = 1 + last * (2 * i + 1) / (2 * kFirstDeaths),
                            .after = i % 2 == 0};
    const std::size_t writes = ExpectEndsUndisturbed(GetParam(), {first}).size();
    for (std::size_t n = 1; n <= writes && !HasFailure(); ++n) {
      for (const bool after : {false, true}) {
        ExpectEndsUndisturbed(GetParam(), {first, {.write = n, .after = after}});
        ++deaths;
      }
    }
  }
  EXPECT_GT(deaths, last);
  std::printf("  %zu deaths of a successor\n", deaths);
}

INSTANTIATE_TEST_SUITE_P(Jobs, KillPointsTest, testing::Values(1, 2, 3));

}  // namespace
}  // namespace adamant::orchestration

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  adamant::InitLog("operator-simulation", adamant::LogLevel::kError);
  return RUN_ALL_TESTS();
}
