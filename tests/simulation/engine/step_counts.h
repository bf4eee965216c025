#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "tests/simulation/engine/aimed_faults.h"

namespace adamant::simulation {

/// Counts which steps seeds pass, for a steps.inc.
/// Threads: one.
class StepCounts {
 public:
  void Add(const AimedFaults::Passes& of_a_seed) {
    ++seeds_;
    for (const auto& [step, passes] : of_a_seed) {
      ++counts_[step].seeds;
      counts_[step].passes += passes;
    }
  }

  /// Each step as a line: its name, the share of the seeds that pass it, and how often these do.
  void Print() const {
    std::printf("// clang-format off\n");
    for (const auto& [step, count] : counts_) {
      const auto seeds = static_cast<double>(count.seeds);
      std::printf("{\"%s\", %.4f, %.1f},\n",
                  step.c_str(),
                  seeds / static_cast<double>(seeds_),
                  static_cast<double>(count.passes) / seeds);
    }
  }

 private:
  struct Count {
    std::uint64_t seeds = 0;
    std::uint64_t passes = 0;
  };

  std::uint64_t seeds_ = 0;
  std::map<std::string, Count> counts_;
};

}  // namespace adamant::simulation
