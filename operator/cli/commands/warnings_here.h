#pragma once

#include <string>
#include <vector>

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::cli {

/// Returns what this machine lacks for a job, as `validate` and `train` warn of it: processors,
/// memory. Of one for a cluster nothing. `job` has its defaults.
std::vector<std::string> WarningsHere(const v1::TrainingJob& job);

}  // namespace adamant::cli
