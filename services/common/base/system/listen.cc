#include "services/common/base/system/listen.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>

#include "absl/status/status.h"
#include "services/common/base/status_macros.h"

namespace adamant {
namespace {

constexpr std::string_view kUnix = "unix:";

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

bool IsPort(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size();
}

absl::StatusOr<AddressList> Resolve(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (colon == std::string::npos || host.empty() || !IsPort(address.substr(colon + 1))) {
    return absl::InvalidArgumentError("'" + address + "' is no address: HOST:PORT or [IPV6]:PORT");
  }
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found);
  if (error != 0) {
    return absl::InvalidArgumentError("'" + address + "' is no address: " + gai_strerror(error));
  }
  return AddressList(found, freeaddrinfo);
}

// 0, or the errno of what failed.
int BindAndListen(int socket, const addrinfo& where) {
  const int on = 1;
  const int off = 0;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (where.ai_family == AF_INET6) {
    setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  const bool listens =
      bind(socket, where.ai_addr, where.ai_addrlen) == 0 && listen(socket, SOMAXCONN) == 0;
  return listens ? 0 : errno;
}

int PortOf(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return 0;
  }
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(bound).sin_port);
}

// A socket that listens; -1 where it cannot, and why.
int MakeListener(const addrinfo& where, int& error) {
  const int socket = ::socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  error = socket < 0 ? errno : BindAndListen(socket, where);
  if (error != 0 && socket >= 0) {
    close(socket);
  }
  return error == 0 ? socket : -1;
}

absl::Status CannotListen(const std::string& address, int error) {
  const std::string text =
      "cannot listen at " + address + ": " + std::generic_category().message(error);
  return error == EADDRNOTAVAIL ? absl::InvalidArgumentError(text) : absl::UnavailableError(text);
}

absl::StatusOr<Listener> ListenAt(const std::string& address, int& error) {
  ADAMANT_ASSIGN_OR_RETURN(const AddressList list, Resolve(address));
  const int socket = MakeListener(*list, error);
  if (socket < 0) {
    return CannotListen(address, error);
  }
  return Listener{
      .socket = socket,
      .address = address.substr(0, address.rfind(':') + 1) + std::to_string(PortOf(socket))};
}

absl::StatusOr<Listener> ListenAtSocket(const std::string& address) {
  const std::string path = address.substr(kUnix.size());
  if (path.size() > kMostSocketPathBytes) {
    return absl::InvalidArgumentError(
        "cannot listen at " + address + ": its path has " + std::to_string(path.size()) +
        " bytes; a socket's has at most " + std::to_string(kMostSocketPathBytes));
  }
  sockaddr_un own{};
  own.sun_family = AF_UNIX;
  path.copy(own.sun_path, kMostSocketPathBytes);
  addrinfo where{};
  where.ai_family = AF_UNIX;
  where.ai_addr = reinterpret_cast<sockaddr*>(&own);
  where.ai_addrlen = sizeof(own);
  int error = 0;
  const int socket = MakeListener(where, error);
  if (socket < 0) {
    return CannotListen(address, error);
  }
  return Listener{.socket = socket, .address = address};
}

}  // namespace

bool IsUnixSocket(std::string_view address) {
  return address.starts_with(kUnix) && address.substr(kUnix.size()).starts_with('/');
}

absl::StatusOr<Listener> Listen(const std::string& address) {
  if (IsUnixSocket(address)) {
    return ListenAtSocket(address);
  }
  int error = 0;
  absl::StatusOr<Listener> listener = ListenAt(address, error);
  constexpr std::string_view kAny = "[::]:";
  if (address.starts_with(kAny) && (error == EAFNOSUPPORT || error == EADDRNOTAVAIL)) {
    return ListenAt("0.0.0.0:" + address.substr(kAny.size()), error);
  }
  return listener;
}

}  // namespace adamant
