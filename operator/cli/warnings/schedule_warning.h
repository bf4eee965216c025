#pragma once

#include <string>

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::cli {

/// Returns what to warn of where `spec.optimiser.schedule` leaves next to nothing of the learning
/// rate long before the job ends; "" where it does not, or where the length of an epoch or the
/// number of epochs is not known. `job` has its defaults.
std::string ScheduleWarning(v1::TrainingJob job);

}  // namespace adamant::cli
