#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/kube_client/base/transport.h"

namespace adamant::kube {

struct Subprocess {
  std::vector<std::string> arguments;  ///< the first: a path, or a name to be looked up in PATH
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to ours
  std::chrono::milliseconds timeout{60'000};
  std::size_t max_output = std::size_t{1} << 20;  ///< bytes, of each kind
};

struct ProgramResult {
  int exit_code = 0;   ///< 128 + its number where a signal ended it, as in shells
  std::string output;  ///< standard output
  std::string errors;  ///< standard error
};

/// Runs a program without input and waits for its end. What is left of it (its process group) is
/// killed when this returns.
/// Errors: NotFound or PermissionDenied when it cannot be run; DeadlineExceeded; Cancelled;
/// ResourceExhausted for too much output. Threads: any.
absl::StatusOr<ProgramResult> RunProgram(const Subprocess& program,
                                         const Cancellation& cancellation);

}  // namespace adamant::kube
