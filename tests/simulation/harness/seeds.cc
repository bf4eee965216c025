#include "tests/simulation/harness/seeds.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ratio>
#include <thread>

namespace adamant::simulation {
namespace {

constexpr double kShareOfPairs = 0.95;

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

unsigned long long Wide(std::uint64_t number) { return number; }

}  // namespace

SeedRange SeedsFromEnvironment() {
  return {.first = FromEnvironment("ADAMANT_SIMULATION_FIRST_SEED", 1),
          .count = FromEnvironment("ADAMANT_SIMULATION_SEEDS", 1000)};
}

void RunOnAllProcessors(const SeedRange& seeds,
                        const std::function<void(std::uint64_t seed)>& run) {
  std::atomic<std::uint64_t> next = seeds.first;
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t seed = next++; seed < seeds.first + seeds.count; seed = next++) {
        run(seed);
      }
    });
  }
}

void SeedTotals::Add(std::uint64_t seed, const SeedOutcome& outcome) {
  ++seeds_;
  faults_ += outcome.faults;
  fewest_faults_ = seeds_ == 1 ? outcome.faults : std::min(fewest_faults_, outcome.faults);
  events_ += outcome.events;
  history_ += outcome.hash * (2 * seed + 1);
  virtual_time_ += outcome.virtual_time;
  if (!outcome.violation.empty()) {
    ++violations_;
    ADD_FAILURE() << "seed " << seed << ": " << outcome.violation << "\n"
                  << outcome.story << "replay: make simulate SEEDS=1 FIRST_SEED=" << seed;
  }
}

void SeedTotals::Print(std::string_view simulation, std::string_view details) const {
  const std::chrono::duration<double, std::ratio<3600>> hours = virtual_time_;
  std::printf(
      "%.*s: %llu seeds, %llu violations; %llu faults (at least %llu a seed), %llu events, %.*s; "
      "%.1f virtual hours in %.1f s: %.0f virtual hours per wall hour; history %016llx\n",
      static_cast<int>(simulation.size()),
      simulation.data(),
      Wide(seeds_),
      Wide(violations_),
      Wide(faults_),
      Wide(fewest_faults_),
      Wide(events_),
      static_cast<int>(details.size()),
      details.data(),
      hours.count(),
      wall_time_.count(),
      hours.count() * 3600 / wall_time_.count(),
      Wide(history_));
}

void ExpectStepsMet(std::string_view simulation,
                    std::span<const Step> steps,
                    const AimedFaults::Hits& hits) {
  std::string missing;
  for (const Step& step : steps) {
    for (int i = 0; i < kStepFaults; ++i) {
      const auto fault = static_cast<StepFault>(i);
      if (!hits.contains({step.name, fault})) {
        missing += "\n  " + std::string(step.name) + ", " + std::string(NameOf(fault));
      }
    }
  }
  const auto all = static_cast<double>(steps.size() * kStepFaults);
  EXPECT_GE(static_cast<double>(hits.size()) / all, kShareOfPairs) << "not met:" << missing;
  std::printf("%.*s: %zu of %.0f pairs of step and fault met; not met:%s\n",
              static_cast<int>(simulation.size()),
              simulation.data(),
              hits.size(),
              all,
              missing.empty() ? " none" : missing.c_str());
}

}  // namespace adamant::simulation
