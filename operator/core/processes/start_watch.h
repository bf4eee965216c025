#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "operator/core/processes/process_table.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Watches over the start of a job: that it does not hold some of its processes for ever while it
/// waits for the others.
/// Threads: one thread at a time.
class StartWatch {
 public:
  using TimePoint = Clock::TimePoint;

  /// The arguments must outlive this.
  StartWatch(const JobSettings& settings, const ProcessTable& processes)
      : settings_(settings), processes_(processes) {}

  /// Some processes that were asked for are missing since the deadline's time. Call it, in the
  /// order of time, whenever something may have changed before training begins.
  bool IsOver(TimePoint now);

  /// Training has begun.
  void Stop() { since_.reset(); }

  /// Takes why members do not start. What was said before of others counts until they join.
  void Explain(const std::map<SlotId, std::string>& why);

  /// "worker-1 and 2 others did not join (worker: 3 of 4 pods); worker-1: no node has room"; the
  /// end is of the first of which something is known.
  [[nodiscard]] std::string Missing() const;

  /// Returns when IsOver may change though nothing happens.
  [[nodiscard]] std::optional<TimePoint> NextTimer() const;

 private:
  const JobSettings& settings_;
  const ProcessTable& processes_;
  std::optional<TimePoint> since_;     // some are missing
  std::map<SlotId, std::string> why_;  // of the missing
};

/// The wait before the start after `releases` that came one after the other: 10 s, doubled each
/// time, at most 10 minutes, times 0.5 to 1.5 by chance. The chance depends on the job and on the
/// count alone. It keeps jobs that do not fit beside each other from trying at the same time.
std::chrono::milliseconds ReleaseWait(std::uint64_t job_uid, std::uint32_t releases);

}  // namespace adamant::controller
