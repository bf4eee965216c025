#pragma once

#include <netinet/in.h>
#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/rng.h"
#include "tests/processes/proxy_behaviour.h"
#include "tests/processes/proxy_pipe.h"

namespace adamant::processes {

/// A socket that is closed with its owner.
class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  [[nodiscard]] int get() const { return descriptor_; }
  [[nodiscard]] bool open() const { return descriptor_ >= 0; }

  /// Whether the poll that filled `descriptors` found it readable.
  [[nodiscard]] bool Readable(std::span<const pollfd> descriptors) const;

  /// Closes it so that the other end sees a reset, not an orderly end.
  void Reset();

 private:
  int descriptor_;
};

/// Packets with this mark are the proxy's own: they are not redirected to it.
inline constexpr int kProxyMark = 1;

/// A client's connection, the one to the server it meant, and perhaps one that repeats what the
/// client says.
/// Threads: one.
class Connection {
 public:
  using TimePoint = Pipe::TimePoint;

  /// Takes over `client` and connects to `server`. Error: Unavailable.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(int client,
                                                          const sockaddr_in& server,
                                                          const Behaviours& behaviours,
                                                          std::uint64_t seed);

  /// The server's, without the port.
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] std::uint64_t forwarded_bytes() const { return forwarded_bytes_; }
  [[nodiscard]] bool duplicated() const { return duplicated_; }

  /// Adds what Work waits for.
  void AddDescriptors(const Behaviour& behaviour, std::vector<pollfd>& descriptors) const;

  /// When Work has something to do although no socket changes.
  [[nodiscard]] std::optional<TimePoint> NextTimer(const Behaviour& behaviour) const;

  enum class State : std::uint8_t { kOpen, kEnded, kReset };

  /// Forwards what `descriptors`, the result of the poll, and the time allow.
  State Work(const Behaviour& behaviour, std::span<const pollfd> descriptors, TimePoint now);

  /// Resets both sides.
  void Reset();

 private:
  // One of the three ends.
  struct End {
    Socket socket;
    Pipe pipe{};         // what is on its way to it
    bool ended = false;  // it will say no more
  };

  Connection(int client, int server, std::string address, std::uint64_t seed);

  bool Forward(End& from, End& to, const Behaviour& behaviour, TimePoint now);
  void Repeat(std::span<const std::byte> bytes, TimePoint due);
  void ReadMirror();
  bool WriteAll(TimePoint now);

  const std::string address_;
  Rng rng_;
  const double spread_share_;  // of the behaviour's spread
  TimePoint reset_at_ = TimePoint::max();
  End client_;
  End server_;
  End mirror_;  // where the client's bytes go a second time
  bool duplicated_ = false;
  std::uint64_t forwarded_bytes_ = 0;
};

}  // namespace adamant::processes
