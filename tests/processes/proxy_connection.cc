#include "tests/processes/proxy_connection.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>

namespace adamant::processes {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;
constexpr std::size_t kLimitedReadBytes = std::size_t{16} << 10;  // keeps a limited rate even

// Bytes that may wait in one direction; beyond them the proxy stops reading.
constexpr std::size_t kMaxWaiting = std::size_t{64} << 20;
constexpr std::size_t kMaxWaitingLimited = std::size_t{1} << 20;

std::size_t MaxWaiting(const Behaviour::Direction& direction) {
  return direction.bytes_per_second == 0 ? kMaxWaiting : kMaxWaitingLimited;
}

std::array<std::byte, kReadBytes> scratch;

enum class Outcome : std::uint8_t { kNothing, kBytes, kEnd, kBroken };

struct Received {
  Outcome outcome = Outcome::kNothing;
  std::span<const std::byte> bytes;  // in `scratch`
};

Received Receive(int socket, std::size_t limit) {
  const ssize_t got = recv(socket, scratch.data(), limit, MSG_DONTWAIT);
  if (got > 0) {
    return {Outcome::kBytes, std::span(scratch).first(static_cast<std::size_t>(got))};
  }
  if (got == 0) {
    return {Outcome::kEnd, {}};
  }
  return {errno == EAGAIN || errno == EINTR ? Outcome::kNothing : Outcome::kBroken, {}};
}

// A socket that is being connected past the redirection; -1 if that is impossible.
int Connect(const sockaddr_in& server) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_MARK, &kProxyMark, sizeof(kProxyMark));
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const auto* address = reinterpret_cast<const sockaddr*>(&server);
  if (connect(descriptor, address, sizeof(server)) != 0 && errno != EINPROGRESS) {
    close(descriptor);
    return -1;
  }
  return descriptor;
}

std::string AddressOf(const sockaddr_in& server) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &server.sin_addr, text, sizeof(text));
  return text;
}

}  // namespace

Socket::~Socket() {
  if (open()) {
    close(descriptor_);
  }
}

bool Socket::Readable(std::span<const pollfd> descriptors) const {
  return open() && std::any_of(descriptors.begin(), descriptors.end(), [&](const pollfd& entry) {
           return entry.fd == descriptor_ && (entry.revents & (POLLIN | POLLHUP | POLLERR)) != 0;
         });
}

void Socket::Reset() {
  if (open()) {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(std::exchange(descriptor_, -1));
  }
}

Connection::Connection(int client, int server, std::string address, std::uint64_t seed)
    : address_(std::move(address)),
      rng_(seed),
      spread_share_(rng_.Uniform()),
      client_{.socket = Socket(client)},
      server_{.socket = Socket(server)},
      mirror_{.socket = Socket()} {}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(int client,
                                                             const sockaddr_in& server,
                                                             const Behaviours& behaviours,
                                                             std::uint64_t seed) {
  std::unique_ptr<Connection> connection(
      new Connection(client, Connect(server), AddressOf(server), seed));
  if (!connection->server_.socket.open()) {
    connection->Reset();
    return absl::UnavailableError("cannot connect to " + connection->address_);
  }
  const Behaviour& behaviour = behaviours.Of(connection->address_);
  if (behaviour.reset_after.count() != 0) {
    const double lives = -std::log1p(-connection->rng_.Uniform());
    connection->reset_at_ =
        std::chrono::steady_clock::now() +
        std::chrono::duration_cast<TimePoint::duration>(behaviour.reset_after * lives);
  }
  if (behaviour.duplicate) {
    connection->mirror_.socket = Socket(Connect(server));
    connection->duplicated_ = connection->mirror_.socket.open();
  }
  return connection;
}

void Connection::AddDescriptors(const Behaviour& behaviour,
                                std::vector<pollfd>& descriptors) const {
  if (behaviour.hold) {
    return;
  }
  const auto add = [&](const End& end, bool reads) {
    const int events = (reads ? POLLIN : 0) | (end.pipe.blocked() ? POLLOUT : 0);
    if (end.socket.open() && events != 0) {
      descriptors.push_back(
          {.fd = end.socket.get(), .events = static_cast<std::int16_t>(events), .revents = 0});
    }
  };
  add(client_, !client_.ended && server_.pipe.waiting_bytes() < MaxWaiting(behaviour.up));
  add(server_, !server_.ended && client_.pipe.waiting_bytes() < MaxWaiting(behaviour.down));
  add(mirror_, !mirror_.ended);
}

std::optional<Connection::TimePoint> Connection::NextTimer(const Behaviour& behaviour) const {
  TimePoint next = reset_at_;
  for (const End* end : {&client_, &server_, &mirror_}) {
    const auto due = end->pipe.NextDue();
    if (due.has_value() && end->socket.open() && !end->pipe.blocked() && !behaviour.hold) {
      next = std::min(next, *due);
    }
  }
  return next == TimePoint::max() ? std::nullopt : std::optional(next);
}

bool Connection::Forward(End& from, End& to, const Behaviour& behaviour, TimePoint now) {
  const Behaviour::Direction& direction = &to == &server_ ? behaviour.up : behaviour.down;
  const Received received =
      Receive(from.socket.get(), direction.bytes_per_second == 0 ? kReadBytes : kLimitedReadBytes);
  if (received.outcome == Outcome::kNothing || received.outcome == Outcome::kBroken) {
    return received.outcome == Outcome::kNothing;
  }
  const auto extra =
      std::chrono::duration_cast<std::chrono::milliseconds>(behaviour.spread * spread_share_);
  const TimePoint due = to.pipe.DueTime(now, received.bytes.size(), direction, extra, rng_);
  if (&to == &server_ && mirror_.socket.open()) {
    Repeat(received.bytes, due + behaviour.duplicate_delay);
  }
  if (received.outcome == Outcome::kEnd) {
    from.ended = true;
    to.pipe.PushEnd(due);
    return true;
  }
  forwarded_bytes_ += received.bytes.size();
  if (due <= now) {
    return to.pipe.WriteOrPush(to.socket.get(), received.bytes, now);
  }
  to.pipe.Push(received.bytes, due);
  return true;
}

// `bytes`: none at the end.
void Connection::Repeat(std::span<const std::byte> bytes, TimePoint due) {
  if (bytes.empty()) {
    mirror_.pipe.PushEnd(due);
  } else if (mirror_.pipe.waiting_bytes() < kMaxWaiting) {
    mirror_.pipe.Push(bytes, due);
  } else {
    mirror_.socket.Reset();  // the server takes less of the copy than the client says
  }
}

void Connection::ReadMirror() {
  const Received received = Receive(mirror_.socket.get(), kReadBytes);
  if (received.outcome == Outcome::kEnd || received.outcome == Outcome::kBroken) {
    mirror_.socket.Reset();
  }
}

bool Connection::WriteAll(TimePoint now) {
  if (mirror_.socket.open() && !mirror_.pipe.Write(mirror_.socket.get(), now)) {
    mirror_.socket.Reset();
  }
  return server_.pipe.Write(server_.socket.get(), now) &&
         client_.pipe.Write(client_.socket.get(), now);
}

Connection::State Connection::Work(const Behaviour& behaviour,
                                   std::span<const pollfd> descriptors,
                                   TimePoint now) {
  if (now >= reset_at_) {
    return State::kReset;
  }
  if (behaviour.hold) {
    return State::kOpen;
  }
  bool sound = true;
  if (client_.socket.Readable(descriptors)) {
    sound = Forward(client_, server_, behaviour, now);
  }
  if (sound && server_.socket.Readable(descriptors)) {
    sound = Forward(server_, client_, behaviour, now);
  }
  if (mirror_.socket.Readable(descriptors)) {
    ReadMirror();
  }
  if (!sound || !WriteAll(now)) {
    return State::kReset;
  }
  const bool repeated = !mirror_.socket.open() || mirror_.pipe.finished();
  return server_.pipe.finished() && client_.pipe.finished() && repeated ? State::kEnded
                                                                        : State::kOpen;
}

void Connection::Reset() {
  client_.socket.Reset();
  server_.socket.Reset();
  mirror_.socket.Reset();
}

}  // namespace adamant::processes
