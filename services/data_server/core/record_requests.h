#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "services/common/base/clock.h"
#include "services/data_server/core/messages.h"

namespace adamant::data_server {

/// The reads and writes of parts' records: those under way, and when the next are due.
/// Threads: one thread at a time.
class RecordRequests {
 public:
  using TimePoint = Clock::TimePoint;

  /// Requests are appended to `out`, which must outlive this.
  RecordRequests(Clock::Duration poll_interval, std::vector<Output>& out)
      : poll_interval_(poll_interval), out_(out) {}

  /// Asks for the record of a part.
  void Read(std::uint32_t part);

  /// Asks for the record of a part when ReadDue finds that it is time.
  void ReadAt(std::uint32_t part, TimePoint time) { read_at_[part] = time; }
  void ReadDue(TimePoint now);

  /// Sends a write of the record of `write.part`, under an id of its own.
  void Write(WriteRecord write);

  /// The answer to a request has come: returns its part; nullopt if that was dropped meanwhile.
  std::optional<std::uint32_t> Take(std::uint64_t request);

  /// Forgets what is under way or planned for the part: its answers are ignored.
  void Drop(std::uint32_t part);

  [[nodiscard]] bool IsUnderWay(std::uint32_t part) const;

  /// From `now` on, in each poll interval the records of other servers' parts are to be read.
  void StartPolling(TimePoint now) { poll_at_ = now; }
  void StopPolling() { poll_at_.reset(); }

  /// Returns true if they are to be read now; if so, not again before the interval is over.
  bool TakePoll(TimePoint now);

  /// Returns when ReadDue or TakePoll has something to do.
  [[nodiscard]] std::optional<TimePoint> NextWake() const;

 private:
  const Clock::Duration poll_interval_;
  std::vector<Output>& out_;

  std::map<std::uint64_t, std::uint32_t> under_way_;  // part by request
  std::uint64_t next_request_ = 1;
  std::map<std::uint32_t, TimePoint> read_at_;  // by part
  std::optional<TimePoint> poll_at_;
};

}  // namespace adamant::data_server
