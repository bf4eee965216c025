#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace adamant::fakes {

/// A port that strangers reach.
struct Port {
  std::string address;               ///< 127.0.0.1:PORT
  std::vector<std::string> methods;  ///< that gRPC serves there; none: HTTP/1.1
};

/// What an attack came to.
struct Damage {
  std::uint64_t bytes = 0;               ///< by which the most memory of the process has grown
  std::chrono::milliseconds slowest{0};  ///< from a probe's first try to its answer
};

/// Attacks all ports of a process at once, one way after another: 40 first messages of 60 MB to
/// each method, for no job and for another one; headers that never end; 50 connections at each port
/// that say nothing, then 600, and hostile ones that come at a steady pace, ADAMANT_HOSTILE (900)
/// of them at each port within ADAMANT_HOSTILE_SECONDS (6). Calls `probe` again and again
/// meanwhile, ten times a second or as soon as it is answered; it returns whether it was, and is
/// tried again otherwise, for half a minute at most. Tells `out` what each way came to.
Damage Attack(pid_t process,
              const std::vector<Port>& ports,
              const std::function<bool()>& probe,
              std::ostream& out);

}  // namespace adamant::fakes
