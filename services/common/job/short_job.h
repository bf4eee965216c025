#pragma once

#include <cstdint>

namespace adamant::v1 {
class TrainingJob;
}

namespace adamant::job {

/// Returns whether two threads have too few batches to find out how far they may go together.
/// `train_examples`: of an epoch; 0: not known, then a job is not short. The others are at least 1.
/// Source: docs/design/0009-asynchrony.md.
bool IsShort(std::uint64_t epochs, std::uint64_t train_examples, std::uint64_t batch_size);

/// `job` has its defaults.
bool IsShort(const v1::TrainingJob& job, std::uint64_t train_examples);

}  // namespace adamant::job
