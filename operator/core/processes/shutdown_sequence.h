#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "operator/core/processes/process_table.h"

namespace adamant::controller {

/// Ends a job's processes role by role: workers hand over what they have to the other two, data
/// servers write their ledger to the parameter servers. Who does not leave in time is killed at the
/// end. Threads: one thread at a time.
class ShutdownSequence {
 public:
  using TimePoint = Clock::TimePoint;

  /// Time that each role has, 2.5 s together, and the reconciler's to notice that they have left.
  /// Half of it where only checkpoints are stored: what is handed over after the last one is given
  /// up.
  static constexpr std::chrono::milliseconds kWorkers{1'200};
  static constexpr std::chrono::milliseconds kDataServers{400};
  static constexpr std::chrono::milliseconds kParameterServers{900};

  /// The arguments must outlive this.
  ShutdownSequence(const JobSettings& settings, ProcessTable& processes, Outbox& outbox)
      : settings_(settings), processes_(processes), outbox_(outbox) {}

  /// Kills at once what an earlier controller may have left of a job that has ended, whether its
  /// processes are known or not.
  void KillLeftovers();

  /// Goes on as far as it can: call it when the job's end is decided, when a process has ended, and
  /// at the deadline. Returns true once all is done.
  bool Step(const std::string& reason, TimePoint now);

  /// Returns true if processes of this role that have not joined are needed no more.
  [[nodiscard]] bool HasStopped(Role role) const;

  /// Returns when the present role's time is up.
  [[nodiscard]] TimePoint deadline() const { return deadline_; }

 private:
  void StopNextRole(const std::string& reason, TimePoint now);
  [[nodiscard]] bool AnyPresent() const;
  void KillRest();

  const JobSettings& settings_;
  ProcessTable& processes_;
  Outbox& outbox_;
  std::size_t stopped_ = 0;  // roles told to stop
  TimePoint deadline_{};
};

}  // namespace adamant::controller
