#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace adamant::fakes {

struct Flood {
  std::string address;
  std::string method;              ///< "/adamant.v1.Controller/Attend"
  std::optional<std::string> job;  ///< that the streams name; none: nothing
  std::size_t streams = 40;        ///< at once, each on a connection of its own
  std::size_t bytes = 60'000'000;  ///< of the first message
};

/// Opens the streams, sends their first messages, and returns when all have ended. Returns how many
/// of them the server has taken in whole and answered with anything but an error.
std::size_t Run(const Flood& flood);

/// The most memory that a process has had, so far.
std::uint64_t PeakBytes(pid_t process);

}  // namespace adamant::fakes
