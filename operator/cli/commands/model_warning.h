#pragma once

#include <string>

namespace adamant::cli {

/// Returns what to tell of a run's models where its job failed as training diverged, or as nothing
/// was learned, or where it succeeded with a poor model; "" of others, and where the run's status
/// cannot be read: it may have a model all the same.
std::string ModelWarning(const std::string& run_folder);

}  // namespace adamant::cli
