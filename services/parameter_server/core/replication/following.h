#pragma once

#include <cstdint>
#include <optional>

#include "services/common/base/clock.h"
#include "services/parameter_server/core/replication/messages.h"

namespace adamant::parameter_server {

/// How a secondary or a learner follows the primary of its epoch: what it has acknowledged and
/// heard to be committed, and until when it promises to propose nothing.
/// Threads: one at a time.
class Following {
 public:
  explicit Following(Clock::Duration grace) : grace_(grace) {}

  /// Another epoch begins: nothing is acknowledged in it.
  void BeginEpoch();

  /// The replica becomes a secondary: it gives the primary time to be heard.
  void Promise(Clock::TimePoint now);

  /// Takes what comes up to `lsn` in this epoch: it is to be acknowledged.
  void Take(Lsn lsn) { acked_ = lsn; }

  /// A copy begins of what was committed up to `base`.
  void BeginCopy(Lsn base);

  /// Whether it acknowledges: the primary was heard in this epoch.
  [[nodiscard]] bool acknowledges() const { return acked_.has_value(); }

  /// Returns the last entry that was taken in this epoch. Requires acknowledges().
  [[nodiscard]] Lsn last() const { return *acked_; }

  /// Returns what to acknowledge: nothing that the disk lacks. Requires acknowledges().
  [[nodiscard]] Lsn Acked(Lsn persisted) const;

  /// A beacon came.
  void OnBeacon(const Beacon& beacon, Clock::TimePoint now);

  /// The primary says that entries up to here are committed.
  void HearCommitted(Lsn committed);

  /// Returns up to where entries may be committed here. Only what was acknowledged in this epoch is
  /// known to be the same.
  [[nodiscard]] Lsn CommitLimit(Lsn persisted) const;

  [[nodiscard]] Clock::TimePoint promised_until() const { return promised_until_; }
  [[nodiscard]] Clock::TimePoint last_beacon() const { return last_beacon_; }

  /// Returns when the last beacon of this epoch was sent; nullopt: none came.
  [[nodiscard]] std::optional<Clock::TimePoint> beacon_sent() const { return beacon_sent_; }

  /// Whether the primary waits for a flush; no more after the call.
  bool TakeFlushWanted();

 private:
  const Clock::Duration grace_;
  std::optional<Lsn> acked_;  // in this epoch
  Lsn known_committed_ = 0;   // what the primary says
  Clock::TimePoint promised_until_{};
  Clock::TimePoint last_beacon_{};
  std::optional<Clock::TimePoint> beacon_sent_;  // of the last one answered in this epoch
  bool flush_wanted_ = false;
};

}  // namespace adamant::parameter_server
