#include "services/common/rpc/resolve.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include "services/common/base/system/listen.h"

namespace adamant::rpc {
namespace {

std::vector<std::string> ResolveOne(const std::string& address) {
  if (IsUnixSocket(address)) {
    return {address};
  }
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) {
    return {address};
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::set<std::string> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    char number[NI_MAXHOST];
    if (getnameinfo(
            each->ai_addr, each->ai_addrlen, number, sizeof(number), nullptr, 0, NI_NUMERICHOST) ==
        0) {
      const bool brackets = each->ai_family == AF_INET6;
      std::string text = brackets ? "[" : "";
      text.append(number).append(brackets ? "]:" : ":").append(port);
      addresses.insert(std::move(text));
    }
  }
  return addresses.empty() ? std::vector{address}
                           : std::vector<std::string>(addresses.begin(), addresses.end());
}

}  // namespace

std::vector<std::string> Resolve(const std::string& names) {
  std::vector<std::string> all;
  std::istringstream rest(names);
  for (std::string name; std::getline(rest, name, ',');) {
    const std::vector<std::string> found = ResolveOne(name);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

std::string AnyLoopbackPort() {
  constexpr char kIpv4[] = "127.0.0.1";
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(kIpv4, "0", &hints, &found) != 0) {
    return "[::1]:0";
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  const int probe = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool bound = probe >= 0 && bind(probe, found->ai_addr, found->ai_addrlen) == 0;
  if (probe >= 0) {
    close(probe);
  }
  return bound ? std::string(kIpv4) + ":0" : "[::1]:0";
}

std::string WithBrackets(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  return host.find(':') == std::string::npos || host.starts_with('[')
             ? address
             : "[" + host + "]" + address.substr(colon);
}

}  // namespace adamant::rpc
