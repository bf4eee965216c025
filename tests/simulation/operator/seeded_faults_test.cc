// Shows that the simulation sees an operator that lacks something: each seeded fault is caught
// within some seeds.

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "services/common/base/log.h"
#include "tests/simulation/harness/seeds.h"
#include "tests/simulation/operator/run.h"

namespace adamant::orchestration {
namespace {

constexpr std::uint64_t kSeeds = 1'000;

class SeededFaultsTest : public testing::TestWithParam<Mutation> {};

// The models of members have expectations of their own, which a fault may disappoint first.
std::string ViolationOf(std::uint64_t seed, Mutation mutation) {
  testing::TestPartResultArray failures;
  const testing::ScopedFakeTestPartResultReporter reporter(&failures);
  const Outcome outcome = RunSeed(seed, mutation);
  if (outcome.violation.empty() && failures.size() > 0) {
    return failures.GetTestPartResult(0).summary();
  }
  return outcome.violation;
}

TEST_P(SeededFaultsTest, IsCaught) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const std::string violation = ViolationOf(seed, GetParam());
    if (!violation.empty() && ViolationOf(seed, Mutation::kNone).empty()) {
      std::printf(
          "caught by seed %llu: %s\n", static_cast<unsigned long long>(seed), violation.c_str());
      return;
    }
  }
  FAIL() << "no seed up to " << kSeeds << " shows it";
}

INSTANTIATE_TEST_SUITE_P(All,
                         SeededFaultsTest,
                         testing::ValuesIn(simulation::AllMutations(kLastMutation)),
                         [](const testing::TestParamInfo<Mutation>& test) {
                           return std::string(NameOf(test.param));
                         });

}  // namespace
}  // namespace adamant::orchestration

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  adamant::InitLog("operator-simulation", adamant::LogLevel::kError);
  return RUN_ALL_TESTS();
}
