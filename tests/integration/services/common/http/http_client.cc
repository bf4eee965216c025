#include "tests/integration/services/common/http/http_client.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>

namespace adamant::http {
namespace {

constexpr timeval kTimeout{.tv_sec = 30, .tv_usec = 0};

}  // namespace

Connection::Connection(const std::string& address) {
  const auto port =
      htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  // Who is not connected reads nothing, which the tests notice.
  if (address.front() == '[') {
    sockaddr_in6 peer{};
    peer.sin6_family = AF_INET6;
    peer.sin6_port = port;
    peer.sin6_addr = in6addr_loopback;
    socket_ = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)connect(socket_, reinterpret_cast<const sockaddr*>(&peer), sizeof(peer));
  } else {
    sockaddr_in peer{};
    peer.sin_family = AF_INET;
    peer.sin_port = port;
    peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)connect(socket_, reinterpret_cast<const sockaddr*>(&peer), sizeof(peer));
  }
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &kTimeout, sizeof(kTimeout));
}

Connection::~Connection() { close(socket_); }

void Connection::Send(const std::string& text) const {
  (void)send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
}

std::string Connection::ReadToEnd() const {
  std::string all;
  char buffer[4096];
  for (ssize_t got = 0; (got = recv(socket_, buffer, sizeof(buffer), 0)) > 0;) {
    all.append(buffer, static_cast<std::size_t>(got));
  }
  return all;
}

std::string Get(const std::string& address, const std::string& path) {
  const Connection connection(address);
  connection.Send("GET " + path + " HTTP/1.0\r\n\r\n");
  return connection.ReadToEnd();
}

}  // namespace adamant::http
