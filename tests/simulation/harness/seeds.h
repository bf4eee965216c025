#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/base/clock.h"
#include "tests/simulation/engine/aimed_faults.h"
#include "tests/simulation/engine/outcome.h"

// How the tests of all simulations run their seeds, and what they say of them.
namespace adamant::simulation {

struct SeedRange {
  std::uint64_t first = 1;
  std::uint64_t count = 1000;
};

/// Returns what the environment asks for: ADAMANT_SIMULATION_FIRST_SEED, ADAMANT_SIMULATION_SEEDS.
SeedRange SeedsFromEnvironment();

/// Calls `run` for each seed, on all processors at once, in no order.
void RunOnAllProcessors(const SeedRange& seeds, const std::function<void(std::uint64_t seed)>& run);

/// Sums over seeds of what all simulations have. Threads: one at a time.
class SeedTotals {
 public:
  /// A violation fails the test that runs, with how to replay the seed.
  void Add(std::uint64_t seed, const SeedOutcome& outcome);

  void set_wall_time(std::chrono::duration<double> time) { wall_time_ = time; }

  /// Prints a line: seeds, violations, faults, events, `details`, times, and the history: a hash of
  /// all that happened in these seeds, in whatever order they were run. It is equal for two states
  /// of the code that decide alike.
  void Print(std::string_view simulation, std::string_view details) const;

 private:
  std::uint64_t seeds_ = 0;
  std::uint64_t violations_ = 0;
  std::uint64_t faults_ = 0;
  std::uint64_t fewest_faults_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t history_ = 0;
  Clock::Duration virtual_time_{};
  std::chrono::duration<double> wall_time_{};
};

/// Expects that at least 95 % of all pairs of step and fault are among `hits`, and prints the
/// others.
void ExpectStepsMet(std::string_view simulation,
                    std::span<const Step> steps,
                    const AimedFaults::Hits& hits);

/// Expects that a seed's history does not depend on what ran before it in the process: runs `seeds`
/// forwards, then backwards.
template <typename Run>
void ExpectTheSameHistories(const std::vector<std::uint64_t>& seeds, const Run& run) {
  std::map<std::uint64_t, SeedOutcome> first;
  for (const std::uint64_t seed : seeds) {
    first[seed] = run(seed);
  }
  const std::vector<std::uint64_t> backwards(seeds.rbegin(), seeds.rend());
  for (const std::uint64_t seed : backwards) {
    const SeedOutcome again = run(seed);
    EXPECT_EQ(again.hash, first[seed].hash) << "seed " << seed;
    EXPECT_EQ(again.events, first[seed].events) << "seed " << seed;
  }
  EXPECT_NE(first[seeds.front()].hash, first[seeds.back()].hash);
}

/// Returns each seeded fault from 1 to `last`.
template <typename Mutation>
std::vector<Mutation> AllMutations(Mutation last) {
  std::vector<Mutation> all;
  for (int i = 1; i <= static_cast<int>(last); ++i) {
    all.push_back(static_cast<Mutation>(i));
  }
  return all;
}

}  // namespace adamant::simulation
