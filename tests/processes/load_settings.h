#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace adamant::processes {

/// What to do to the parameter servers.
struct LoadSettings {
  std::uint64_t rate = 0;                 ///< updates per second; 0: as many as go
  std::uint64_t poison_every = 0;         ///< every so many updates one with a NaN; 0: none
  std::uint64_t reads = 0;                ///< fetches of a shard per second
  bool retain = true;                     ///< LoadBook::Options
  std::chrono::milliseconds retry{1000};  ///< an update without an answer is sent again
  std::chrono::milliseconds shortest_gap{50};
};

/// Reads "rate=300 poison_every=100 reads=10 retain=0 retry=1000 shortest_gap=50".
/// Error: InvalidArgument.
absl::StatusOr<LoadSettings> ParseLoadSettings(const std::string& text);

}  // namespace adamant::processes
