// Prints tests/simulation/steps.inc: the steps of the cores that 2,000 seeds pass, how many of the
// seeds, and how often each.

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "tests/simulation/run.h"

namespace adamant::simulation {
namespace {

constexpr std::uint64_t kSeeds = 2000;

struct Count {
  std::uint64_t seeds = 0;
  std::uint64_t passes = 0;
};

void Measure() {
  std::map<std::string, Count> counts;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const auto& [step, passes] : RunSeed(seed, Mutation::kNone, false).passes) {
      ++counts[step].seeds;
      counts[step].passes += passes;
    }
  }
  std::printf("// clang-format off\n");
  for (const auto& [step, count] : counts) {
    const auto seeds = static_cast<double>(count.seeds);
    std::printf("{\"%s\", %.4f, %.1f},\n",
                step.c_str(),
                seeds / kSeeds,
                static_cast<double>(count.passes) / seeds);
  }
}

}  // namespace
}  // namespace adamant::simulation

int main() { adamant::simulation::Measure(); }
