#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

// The instruction sets that our own kernels are built for, best first as far as they go on one
// machine: "AVX512", "AVX2", "SSE4" (x86-64), "NEON" (Arm), "PLAIN".
namespace adamant::kernels {

/// Returns the instruction sets that this machine has, and that LimitIsa allows; never empty.
std::vector<std::string> SupportedIsas();

/// From now on own kernels and those of oneDNN use nothing better than `name`, or the best there is
/// below it. oneDNN follows only if it has made no kernel yet in this process, and knows no PLAIN.
/// Errors: InvalidArgument lists the names. Threads: before others make kernels.
absl::Status LimitIsa(std::string_view name);

/// LimitIsa as ADAMANT_MAX_CPU_ISA in the environment says; without it nothing happens.
absl::Status LimitIsaFromEnvironment();

/// While it lives, kernels are made for `name`, one of SupportedIsas(). For tests and benchmarks;
/// oneDNN does not follow. Threads: as LimitIsa.
class ScopedIsa {
 public:
  explicit ScopedIsa(std::string_view name);
  ~ScopedIsa();
  ScopedIsa(const ScopedIsa&) = delete;
  ScopedIsa& operator=(const ScopedIsa&) = delete;
};

}  // namespace adamant::kernels
