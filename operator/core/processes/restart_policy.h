#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "operator/core/processes/process_table.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/failure_rules.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Decides what follows from the loss of a process: its restart and the wait before it, within the
/// restart budget, or the end of the job.
/// Threads: one thread at a time.
class RestartPolicy {
 public:
  using TimePoint = Clock::TimePoint;

  /// A process that has run for so many times the wait before it ran well: its slot's backoff
  /// begins anew.
  static constexpr int kRanWell = 10;
  /// One that has run for so many times the first wait came up: the wait after it is at most a
  /// `kShareOfRun`-th of the time that it ran. So a slot whose processes come up, and are killed
  /// again and again, is without one at most a fifth of the time: else the few that are left where
  /// something kills them in turn are killed the more often, until all wait for a minute.
  static constexpr int kCameUp = 5;
  static constexpr int kShareOfRun = 4;
  /// The longest wait before a restart.
  static constexpr std::chrono::milliseconds kLongestBackoff{60'000};

  /// The arguments must outlive this.
  RestartPolicy(const JobSettings& settings,
                JobState& state,
                Outbox& outbox,
                ProcessTable& processes)
      : settings_(settings), state_(state), outbox_(outbox), processes_(processes) {}

  /// Judges those whom the last controller had taken for lost, as they were silent, and whose end
  /// it did not live to hear of; nobody will tell of that who is not among `known`. Before
  /// ProcessStarter::StartRole. Errors: as DecideRestart.
  absl::Status DecideGivenUp(std::span<const StartProcess> known);

  /// Frees the slot of a process that is lost; from now on counts the wait before the next one.
  /// DecideRestart says what follows.
  void MarkLost(ProcessTable::Slot& slot, ProcessLoss loss, TimePoint now);

  /// The lost process has ended, or never was: plans its restart as failureRules want it.
  /// Errors: the job is to fail, saying what died and why that is the end: FailedPrecondition by a
  /// rule, for a bad configuration, or where its machine does not let it run; ResourceExhausted
  /// when the restart budget is spent.
  absl::Status DecideRestart(ProcessTable::Slot& slot);

 private:
  void Forgive(std::uint32_t& losses, Clock::Duration ran) const;
  std::chrono::milliseconds NextDelay(SlotId id, bool at_once);

  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;
  ProcessTable& processes_;
};

/// The wait before the restart after `restarts` earlier ones: `first`, doubled each time, at most
/// RestartPolicy::kLongestBackoff.
std::chrono::milliseconds RestartDelay(std::chrono::milliseconds first, std::uint32_t restarts);

/// The wait before a slot's next process after so many losses: none after none, else RestartDelay.
std::chrono::milliseconds DelayAfterLosses(std::chrono::milliseconds first, std::uint32_t losses);

}  // namespace adamant::controller
