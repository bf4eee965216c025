#pragma once

#include <string>

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::cli {

/// Warns of a net whose logits come through an activation or a dropout; "" of others. `job` has its
/// defaults.
std::string NetWarning(const v1::TrainingJob& job);

}  // namespace adamant::cli
