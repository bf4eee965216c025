#pragma once

#include <string_view>
#include <vector>

#include "services/common/job/job.h"

namespace adamant::cli {

/// Prints "adamant: MESSAGE" to standard error, as InLines breaks it.
void PrintError(std::string_view message);

/// Prints what is wrong with a manifest to standard error: a line for each of the first 20
/// problems, and how many more there are.
void PrintProblems(const std::vector<job::Diagnostic>& problems);

}  // namespace adamant::cli
