#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace adamant {

/// The longest path of a Unix socket, in bytes: the kernel's.
inline constexpr std::size_t kMostSocketPathBytes = 107;

/// Returns whether `address` is that of a Unix socket: unix:PATH, of an absolute path.
bool IsUnixSocket(std::string_view address);

/// A socket that listens at an address.
struct Listener {
  int socket = -1;      ///< the caller closes it
  std::string address;  ///< as it was given, or 0.0.0.0 in place of [::], with the port in use
};

/// `address` is HOST:PORT or [IPV6]:PORT; port 0: the kernel chooses. `[::]` takes IPv4 as well,
/// and where the machine has no IPv6 it is 0.0.0.0. Or it is unix:PATH, where nothing may be yet.
/// Errors: InvalidArgument when it is none, or none of this machine; Unavailable when it cannot be
/// listened at. Both name it.
absl::StatusOr<Listener> Listen(const std::string& address);

}  // namespace adamant
