#pragma once

#include <cstddef>
#include <string>

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::cli {

/// Returns what to warn of before the job starts on one machine of so many processors: of far more
/// processes than these can serve. "" where there is nothing, or where the job has fields that only
/// clusters use. `job` has its defaults.
std::string MachineWarning(const v1::TrainingJob& job, std::size_t processors);

/// Returns what to tell of a job whose processes ended too often: how many share so many
/// processors; "" of few, and of pods.
std::string CrowdText(const v1::TrainingJob& job, std::size_t processors);

}  // namespace adamant::cli
