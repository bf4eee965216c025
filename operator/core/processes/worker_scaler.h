#pragma once

#include <chrono>
#include <vector>

#include "operator/core/processes/process_table.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Brings the workers to the settings' number once that has changed.
/// Threads: one thread at a time.
class WorkerScaler {
 public:
  using TimePoint = Clock::TimePoint;

  /// A worker that is not needed any more has this time to hand over what it did.
  static constexpr std::chrono::milliseconds kLeaveTimeout{10'000};

  /// The arguments must outlive this.
  WorkerScaler(const JobSettings& settings, ProcessTable& processes)
      : settings_(settings), processes_(processes) {}

  /// Workers that the settings' number lacks get their slots, and those of lower ones that are free
  /// are to be filled; the first time by ProcessStarter::StartRole.
  void AddWorkers(TimePoint now);

  /// Workers beyond the settings' number are told to stop, or never start. Returns those that are
  /// gone already: nothing more is expected of them. Who has left is to be vacated.
  std::vector<SlotId> DismissWorkers(TimePoint now);

 private:
  const JobSettings& settings_;
  ProcessTable& processes_;
};

}  // namespace adamant::controller
