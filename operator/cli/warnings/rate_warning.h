#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace adamant::v1 {
class JobSpec;
}  // namespace adamant::v1

namespace adamant::cli {

/// Returns what to warn of where a learning rate of `spec.optimiser` is above all that was measured
/// to train, or so low that weights hardly move in the job's `batches` (0: not known), or where the
/// weight decay is strong.
std::vector<std::string> RateWarnings(const v1::JobSpec& spec, std::uint64_t batches);

}  // namespace adamant::cli
