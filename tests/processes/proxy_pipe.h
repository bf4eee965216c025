#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "services/common/base/rng.h"
#include "tests/processes/proxy_behaviour.h"

namespace adamant::processes {

/// The bytes on their way to one socket, each with the time at which it may go on. They leave in
/// the order in which they came. Threads: one.
class Pipe {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// When bytes that come now may go on.
  TimePoint DueTime(TimePoint now,
                    std::size_t bytes,
                    const Behaviour::Direction& direction,
                    std::chrono::milliseconds extra,
                    Rng& rng);

  /// Queues a copy.
  void Push(std::span<const std::byte> bytes, TimePoint due);

  /// No more bytes will come; the socket hears of it after the last.
  void PushEnd(TimePoint due);

  /// Writes what is due to `socket`, as far as it takes it. Returns false when the socket is
  /// broken.
  [[nodiscard]] bool Write(int socket, TimePoint now);

  /// Writes `bytes` at once if nothing waits before them, and queues the rest.
  [[nodiscard]] bool WriteOrPush(int socket, std::span<const std::byte> bytes, TimePoint now);

  [[nodiscard]] std::size_t waiting_bytes() const { return waiting_bytes_; }

  /// Whether the socket took less than was due: it must become writable first.
  [[nodiscard]] bool blocked() const { return blocked_; }

  /// Whether the end has been passed on.
  [[nodiscard]] bool finished() const { return finished_; }

  /// When the first byte, or the end, is due; nothing when none waits.
  [[nodiscard]] std::optional<TimePoint> NextDue() const;

 private:
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
    std::size_t written = 0;
    TimePoint due;
  };

  std::deque<Chunk> chunks_;
  std::size_t waiting_bytes_ = 0;
  std::optional<TimePoint> end_;
  bool blocked_ = false;
  bool finished_ = false;
  TimePoint last_due_{};
  TimePoint line_free_{};  // when the bytes so far have passed the limited line
};

}  // namespace adamant::processes
