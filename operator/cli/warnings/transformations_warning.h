#pragma once

#include <string>

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::cli {

/// Warns of a normalisation that leaves next to nothing of the differences between pixels, or makes
/// them huge: as a rule its numbers are those of bytes. "" where it is sound. `job` has its
/// defaults.
std::string NormaliseWarning(const v1::TrainingJob& job);

/// Warns of shifts by half the image or more; "" of smaller ones. `job` has its defaults.
std::string ShiftWarning(const v1::TrainingJob& job);

}  // namespace adamant::cli
