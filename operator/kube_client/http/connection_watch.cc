#include "operator/kube_client/http/connection_watch.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

namespace adamant::kube {
namespace {

constexpr int kProbeAfterSeconds = 10;
constexpr int kProbeEverySeconds = 5;
constexpr int kUnansweredMilliseconds = 20'000;  // takes the place of the number of probes

}  // namespace

void WatchConnection(int socket) {
  const auto set = [socket](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_KEEPIDLE, kProbeAfterSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kProbeEverySeconds);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUnansweredMilliseconds);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
}

bool IsStale(int socket) {
  char byte = 0;
  return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
         (errno != EAGAIN && errno != EWOULDBLOCK);
}

}  // namespace adamant::kube
