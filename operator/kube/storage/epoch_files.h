#pragma once

#include <string>
#include <vector>

#include "operator/core/state/state.h"

namespace adamant::kube {

/// The results of a job's epochs, in all its attempts, as a pod finds them that mounts their
/// ConfigMaps (EpochObjects): a file each, named as the entries are.
struct EpochFiles {
  std::vector<controller::EpochResult> results;  ///< in the order in which their epochs ended
  std::vector<std::string> problems;             ///< of files that are left out, each with its name
};

/// Reads the results in a folder; other files are none of them. A folder that cannot be read is a
/// problem.
EpochFiles ReadEpochFiles(const std::string& folder);

}  // namespace adamant::kube
