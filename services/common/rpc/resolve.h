#pragma once

#include <string>
#include <vector>

namespace adamant::rpc {

/// Every address behind `names`, as numbers: one or more host:port, separated by commas. A host
/// may have several (a headless service of Kubernetes has one for each of its pods); they are
/// sorted. A name that cannot be resolved now stands for itself, and so does a Unix socket
/// (IsUnixSocket). Waits for the resolver.
std::vector<std::string> Resolve(const std::string& names);

/// Returns the address to listen on for processes of this machine alone, at any port:
/// "127.0.0.1:0", or "[::1]:0" where it has no IPv4.
std::string AnyLoopbackPort();

/// host:port, with brackets around a host that is an IPv6 address without them, as Kubernetes tells
/// those of pods.
std::string WithBrackets(const std::string& address);

}  // namespace adamant::rpc
