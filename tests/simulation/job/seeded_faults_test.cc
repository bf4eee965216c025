// Shows that the simulation sees broken protocols: each seeded fault is caught within some seeds.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/simulation/job/run.h"

namespace adamant::simulation {
namespace {

constexpr std::uint64_t kSeeds = 1000;

std::vector<Mutation> AllMutations() {
  std::vector<Mutation> all;
  for (int i = 1; i <= static_cast<int>(kLastMutation); ++i) {
    all.push_back(static_cast<Mutation>(i));
  }
  return all;
}

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
                         testing::ValuesIn(AllMutations()),
                         [](const testing::TestParamInfo<Mutation>& test) {
                           return std::string(NameOf(test.param));
                         });

}  // namespace
}  // namespace adamant::simulation
