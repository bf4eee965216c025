#pragma once

#include <cstdint>

namespace adamant::v1 {
class TrainingJob;
}

namespace adamant::job {

/// Examples that worker 0 trains alone before the others begin (spec.distribution.warmStart); 0:
/// all begin at once. May be more than there are. `job` has its defaults. Source:
/// docs/design/0009-asynchrony.md.
std::uint64_t WarmStartExamples(const v1::TrainingJob& job, std::uint64_t train_examples);

/// Returns whether the manifest says that several workers, of more than two threads in all, begin
/// together on untrained weights (warmStart.examples: 0), and fade in. `job` has its defaults.
bool FadesInUntrained(const v1::TrainingJob& job);

}  // namespace adamant::job
