#pragma once

#include <string>
#include <variant>

#include "operator/kube/job/operator.h"
#include "operator/kube_client/auth/config.h"

namespace adamant {

/// Flags of adamant-operator.
struct OperatorFlags {
  kube::ConfigFlags config;
  kube::OperatorOptions options;  ///< without observers
  std::string metrics_listen = "[::]:8080";
  std::string probes_listen = "[::]:8081";
};

/// Returns the flags, or the exit code when the program is to end: it was asked for help, or a flag
/// is wrong, which is told on standard error by its name.
std::variant<OperatorFlags, int> ParseOperatorFlags(int argc, char** argv);

}  // namespace adamant
