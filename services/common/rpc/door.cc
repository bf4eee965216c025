#include "services/common/rpc/door.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "services/common/rpc/frame.h"
#include "services/common/rpc/stream_guard.h"

namespace adamant::rpc {
namespace {

// Of the files that the process may open, the last are not for connections: its stores open some,
// too.
constexpr rlim_t kSpareFiles = 64;

// How often strangers are looked at, while there are any.
constexpr std::chrono::milliseconds kLookInterval(2);

// States of a connection that this end has not closed (the kernel's numbers).
constexpr std::uint8_t kEstablished = 1;
constexpr std::uint8_t kSynReceived = 3;
constexpr std::uint8_t kCloseWait = 8;

// Whether `file` is one of the last that may be opened: each takes the lowest number that is free.
bool IsSpare(int file) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) {
    return false;
  }
  return static_cast<rlim_t>(file) >= files.rlim_cur - std::min(kSpareFiles, files.rlim_cur / 4);
}

std::string KeyOf(const std::string& host, std::string_view port) {
  return host + ' ' + std::string(port);
}

// Of a peer as gRPC calls it.
std::string KeyOf(std::string_view peer) {
  return KeyOf(HostOfPeer(peer), peer.substr(peer.rfind(':') + 1));
}

std::string KeyOf(const sockaddr_storage& peer) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (peer.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(peer);
    inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
    return KeyOf(text.data(), std::to_string(ntohs(four.sin_port)));
  }
  const auto& six = reinterpret_cast<const sockaddr_in6&>(peer);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
    inet_ntop(AF_INET, &six.sin6_addr.s6_addr[12], text.data(), text.size());
  } else {
    inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
  }
  return KeyOf(text.data(), std::to_string(ntohs(six.sin6_port)));
}

// As gRPC sets a listener, from which its connections have it.
void Tune(int listener) {
  const int on = 1;
  setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const auto timeout = static_cast<unsigned>(Liveness().give_up_after.count());
  setsockopt(listener, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
}

tcp_info InfoOf(int socket) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size);
  return info;
}

// Whether gRPC has not ended it.
bool IsOpen(const tcp_info& info) {
  return info.tcpi_state == kEstablished || info.tcpi_state == kSynReceived ||
         info.tcpi_state == kCloseWait;
}

// The kernel forgets what has come, takes no more, and resets the peer; gRPC finds its end of it
// closed. After a mere shutdown a peer that goes on sending would go on being read.
void Cut(int socket) {
  const sockaddr nobody{.sa_family = AF_UNSPEC, .sa_data = {}};
  (void)connect(socket, &nobody, sizeof(nobody));  // what can fail has been closed already
  shutdown(socket, SHUT_RDWR);
  close(socket);
}

}  // namespace

Door::Door(Listener listener, const Limits& limits)
    : listener_(std::move(listener)), limits_(limits) {
  Tune(listener_.socket);
}

Door::~Door() {
  Close();
  close(listener_.socket);
  for (const Stranger& stranger : strangers_) {
    close(stranger.socket);
  }
}

void Door::Open(Handler handler) {
  handler_ = std::move(handler);
  watcher_ = std::thread([this] { Watch(); });
  taker_ = std::thread([this] { Take(); });
}

void Door::Close() {
  closed_ = true;
  shutdown(listener_.socket, SHUT_RDWR);  // which wakes the taker
  const MutexLock lock(closing_);
  if (!taker_.joinable()) {
    return;
  }
  taker_.join();
  {
    const MutexLock watched(mutex_);
    takes_ = false;
    changed_.NotifyAll();
  }
  watcher_.join();
}

void Door::Admit(std::string_view peer) {
  const std::string key = KeyOf(peer);
  const MutexLock lock(mutex_);
  const auto stranger = std::ranges::find(strangers_, key, &Stranger::peer);
  if (stranger != strangers_.end()) {
    close(stranger->socket);
    strangers_.erase(stranger);
  }
}

void Door::Take() {
  bool may_take = true;
  while (!closed_) {
    pollfd file{.fd = may_take ? listener_.socket : -1, .events = POLLIN, .revents = 0};
    poll(&file, 1, may_take ? -1 : static_cast<int>(kLookInterval.count()));
    may_take = TakeAll();
  }
}

void Door::Watch() {
  const MutexLock lock(mutex_);
  while (takes_) {
    if (strangers_.empty()) {
      changed_.Wait(mutex_);
    } else {
      changed_.WaitFor(mutex_, kLookInterval);
    }
    Look();
  }
}

// False: there is no room for more, or no file, until the next look.
bool Door::TakeAll() {
  for (std::size_t taken = 0; taken < limits_.most_strangers; ++taken) {
    if (!HasRoom()) {
      return false;
    }
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    const int socket = accept4(
        listener_.socket, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0 && errno == EAGAIN) {
      return true;
    }
    const bool gone = socket < 0 && (errno == EINTR || errno == ECONNABORTED);
    if (!gone && !LetIn(socket, peer)) {
      const MutexLock lock(mutex_);
      CutOldest();
      return false;
    }
  }
  return true;
}

// False for want of files or memory.
bool Door::LetIn(int socket, const sockaddr_storage& peer) {
  const int own = socket < 0 ? -1 : fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (own < 0 || IsSpare(own)) {
    for (const int file : {socket, own}) {
      if (file >= 0) {
        close(file);
      }
    }
    return false;
  }
  {
    const MutexLock lock(mutex_);
    if (strangers_.size() >= limits_.most_strangers) {
      CutOldest();
    }
    strangers_.push_back({.peer = KeyOf(peer),
                          .socket = own,
                          .since = std::chrono::steady_clock::now(),
                          .bytes = 0});
    if (strangers_.size() == 1) {
      changed_.NotifyAll();
    }
  }
  handler_(socket);
  return true;
}

// The oldest gives way once it has had its time.
bool Door::HasRoom() {
  const MutexLock lock(mutex_);
  return strangers_.size() < limits_.most_strangers ||
         std::chrono::steady_clock::now() - strangers_.front().since >= limits_.least_time;
}

void Door::CutOldest() {
  if (!strangers_.empty()) {
    Cut(strangers_.front().socket);
    strangers_.erase(strangers_.begin());
  }
}

// Forgets those that have ended, and cuts those that have been here for too long, or sent too much.
void Door::Look() {
  const TimePoint now = std::chrono::steady_clock::now();
  std::uint64_t bytes = 0;
  std::erase_if(strangers_, [&](Stranger& stranger) {
    const tcp_info info = InfoOf(stranger.socket);
    stranger.bytes = info.tcpi_bytes_received;
    if (!IsOpen(info) || stranger.bytes > limits_.most_bytes ||
        now - stranger.since >= limits_.most_time) {
      Cut(stranger.socket);
      return true;
    }
    bytes += stranger.bytes;
    return false;
  });
  while (bytes > limits_.most_bytes_together) {
    const auto most = std::ranges::max_element(strangers_, {}, &Stranger::bytes);
    bytes -= most->bytes;
    Cut(most->socket);
    strangers_.erase(most);
  }
}

}  // namespace adamant::rpc
