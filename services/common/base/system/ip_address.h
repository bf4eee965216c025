#pragma once

#include <string>

namespace adamant {

/// Returns an IP address as it is written by all who follow RFC 5952: "fd00::1" of "FD00:0::0001".
/// One of IPv4 within IPv6 ("::ffff:10.0.0.1") becomes that of IPv4, and the link that an address
/// belongs to ("%eth0") is left out. What is no address comes back as it is.
std::string CanonicalAddress(const std::string& address);

}  // namespace adamant
