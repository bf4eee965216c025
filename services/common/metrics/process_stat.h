#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace adamant::metrics {

/// Part of what /proc/PID/stat says of a process, in the kernel's units.
struct ProcessStat {
  std::uint64_t processor_ticks = 0;  ///< of user and system
  std::uint64_t start_ticks = 0;      ///< since the machine was started
  std::uint64_t virtual_bytes = 0;
  std::uint64_t resident_pages = 0;

  bool operator==(const ProcessStat&) const = default;
};

/// Reads /proc/PID/stat. nullopt: that is no such line.
std::optional<ProcessStat> ParseProcessStat(std::string_view text);

/// Reads out of /proc/stat when the machine was started, Unix time in seconds. nullopt: it is not
/// there.
std::optional<std::uint64_t> ParseBootTime(std::string_view text);

}  // namespace adamant::metrics
