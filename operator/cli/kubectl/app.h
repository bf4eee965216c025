#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operator/cli/kubectl/cluster/session.h"

// `kubectl adamant` as a whole.
namespace adamant::kubectl {

/// Declares all commands. Both arguments must outlive the parsing.
void AddCommands(CLI::App& app, int& exit_code);

/// The names of the jobs that can be meant; none where they cannot be had quickly.
using JobNames = std::function<std::vector<std::string>(const Target& target)>;
std::vector<std::string> NamesOfJobs(const Target& target);

/// Returns what may stand in place of the last of `words`, which follow "kubectl adamant", a line
/// each, and what kubectl is to make of it.
/// Source: kubectl's "Plugins: shell completion", the protocol of Cobra's __complete.
std::string Completions(const CLI::App& app,
                        const std::vector<std::string>& words,
                        const JobNames& job_names);

}  // namespace adamant::kubectl
