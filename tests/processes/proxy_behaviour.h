#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace adamant::processes {

/// What the proxy does to the connections to one address.
struct Behaviour {
  struct Direction {
    std::chrono::milliseconds delay{};
    std::chrono::milliseconds jitter{};  ///< added to it, uniform in [0, jitter), for every read
    std::uint64_t bytes_per_second = 0;  ///< 0: no limit
  };

  Direction up;                             ///< towards the address
  Direction down;                           ///< back
  std::chrono::milliseconds spread{};       ///< added to both delays, drawn once per connection
  std::chrono::milliseconds reset_after{};  ///< mean life of a connection; 0: never reset
  bool hold = false;                        ///< nothing is forwarded
  bool duplicate = false;  ///< what goes up goes up again on a second connection …
  std::chrono::milliseconds duplicate_delay{};  ///< … this much later; its answers are thrown away
};

/// Reads "key=value key=value …"; what is not named has its default:
///
///   delay, delay_up, delay_down, jitter, jitter_up, jitter_down, spread, reset_after,
///   duplicate_delay     in milliseconds, at most 10 minutes
///   rate, rate_up, rate_down     in bytes per second
///   hold, duplicate     0 or 1
///
/// Error: InvalidArgument, quoting what is wrong.
absl::StatusOr<Behaviour> ParseBehaviour(std::string_view text);

/// The behaviours by address ("10.77.0.2"), and that of all other addresses.
struct Behaviours {
  std::map<std::string, Behaviour, std::less<>> by_address;
  Behaviour otherwise;

  [[nodiscard]] const Behaviour& Of(std::string_view address) const {
    const auto found = by_address.find(address);
    return found == by_address.end() ? otherwise : found->second;
  }
};

}  // namespace adamant::processes
