#pragma once

#include <string>
#include <vector>

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::cli {

/// Warns of a net whose logits come through an activation or a dropout, and of shifts of images by
/// half their size or more. `job` has its defaults.
std::vector<std::string> NetWarnings(const v1::TrainingJob& job);

}  // namespace adamant::cli
