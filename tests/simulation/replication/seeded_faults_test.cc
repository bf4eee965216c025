// Shows that the simulation sees broken protocols: each seeded fault is caught within some seeds.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/simulation/harness/seeds.h"
#include "tests/simulation/replication/run.h"

namespace adamant::replication_simulation {
namespace {

constexpr std::uint64_t kSeeds = 1000;

// That a bucket does not recover (I13) says little.
bool IsOfSafety(const std::string& violation) {
  return !violation.empty() && !violation.starts_with("I13");
}

class SeededReplicationFaultsTest : public testing::TestWithParam<Mutation> {};

TEST_P(SeededReplicationFaultsTest, IsCaught) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Outcome outcome = RunSeed(seed, GetParam());
    if (IsOfSafety(outcome.violation)) {
      std::printf("caught by seed %llu: %s\n",
                  static_cast<unsigned long long>(seed),
                  outcome.violation.c_str());
      return;
    }
  }
  FAIL() << "no seed up to " << kSeeds << " shows it";
}

INSTANTIATE_TEST_SUITE_P(All,
                         SeededReplicationFaultsTest,
                         testing::ValuesIn(simulation::AllMutations(kLastMutation)),
                         [](const testing::TestParamInfo<Mutation>& test) {
                           return std::string(NameOf(test.param));
                         });

}  // namespace
}  // namespace adamant::replication_simulation
