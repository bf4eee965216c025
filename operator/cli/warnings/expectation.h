#pragma once

#include <string>
#include <vector>

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::cli {

/// Texts on what becomes of a job's numbers where more than one thread trains.
struct ExpectationText {
  std::string lines;                  ///< each ends with '\n'; empty for one thread
  std::string speed{};                ///< also among these: that fewer workers train faster; or ""
  std::vector<std::string> warnings;  ///< of what was not measured, or was measured to be worse
};

/// `job` has its defaults; its workers are taken to be equally fast.
ExpectationText ExpectationOf(v1::TrainingJob job);

/// Prints "warning: WARNING" for each to standard error, as InLines breaks it.
void PrintWarnings(const std::vector<std::string>& warnings);

}  // namespace adamant::cli
