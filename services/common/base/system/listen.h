#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace adamant {

/// A socket that listens at an address.
struct Listener {
  int socket = -1;      ///< the caller closes it
  std::string address;  ///< as it was given, or 0.0.0.0 in place of [::], with the port in use
};

/// `address` is HOST:PORT or [IPV6]:PORT; port 0: the kernel chooses. `[::]` takes IPv4 as well,
/// and where the machine has no IPv6 it is 0.0.0.0. Errors: InvalidArgument when it is none, or
/// none of this machine; Unavailable when it cannot be listened at. Both name it.
absl::StatusOr<Listener> Listen(const std::string& address);

}  // namespace adamant
