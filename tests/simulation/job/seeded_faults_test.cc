// Shows that the simulation sees broken protocols: each seeded fault is caught within some seeds.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/simulation/harness/seeds.h"
#include "tests/simulation/job/run.h"

namespace adamant::simulation {
namespace {

constexpr std::uint64_t kSeeds = 1000;

class SeededFaultsTest : public testing::TestWithParam<Mutation> {};

TEST_P(SeededFaultsTest, IsCaught) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Outcome outcome = RunSeed(seed, GetParam());
    if (!outcome.violation.empty()) {
      std::printf("caught by seed %llu: %s\n",
                  static_cast<unsigned long long>(seed),
                  outcome.violation.c_str());
      return;
    }
  }
  FAIL() << "no seed up to " << kSeeds << " shows it";
}

INSTANTIATE_TEST_SUITE_P(All,
                         SeededFaultsTest,
                         testing::ValuesIn(AllMutations(kLastMutation)),
                         [](const testing::TestParamInfo<Mutation>& test) {
                           return std::string(NameOf(test.param));
                         });

}  // namespace
}  // namespace adamant::simulation
