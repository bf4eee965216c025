#pragma once

#include <optional>
#include <span>

#include "operator/core/processes/process_table.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Asks for processes: those that a job begins with, and the next ones of slots whose wait is over.
/// Threads: one thread at a time.
class ProcessStarter {
 public:
  using TimePoint = Clock::TimePoint;

  /// The arguments must outlive this.
  ProcessStarter(const JobSettings& settings, Outbox& outbox, ProcessTable& processes)
      : settings_(settings), outbox_(outbox), processes_(processes) {}

  /// Asks for a process in every slot of a role, but for those whose last process is among `known`:
  /// it is expected to join again, or its end to be reported.
  void StartRole(Role role, std::span<const StartProcess> known, TimePoint now);

  /// Starts the processes whose backoff is over. Two processes of a slot never run at a time: the
  /// next starts when the last has ended.
  void StartDue(TimePoint now);

  /// The last process that was asked for is expected to join, in its time from now on.
  void Await(ProcessTable::Slot& slot, TimePoint now) const;

  /// Returns when StartDue must be asked again; nullopt: nothing is planned.
  [[nodiscard]] std::optional<TimePoint> NextTimer() const;

 private:
  void Start(ProcessTable::Slot& slot, TimePoint now);

  const JobSettings& settings_;
  Outbox& outbox_;
  ProcessTable& processes_;
};

}  // namespace adamant::controller
