#pragma once

#include <map>
#include <optional>
#include <string>

#include "operator/core/processes/process_table.h"
#include "operator/core/processes/start_watch.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/outcome.h"
#include "operator/core/state/state.h"

namespace adamant::controller {

/// Ends the start of a job that takes longer than spec.runPolicy.startDeadline: as failed, or by
/// releasing its processes for a while.
/// Threads: one thread at a time.
class StartDeadline {
 public:
  using TimePoint = Clock::TimePoint;

  /// The arguments must outlive this.
  StartDeadline(const JobSettings& settings,
                JobState& state,
                Outbox& outbox,
                const ProcessTable& processes,
                Outcome& outcome)
      : settings_(settings),
        state_(state),
        outbox_(outbox),
        outcome_(outcome),
        watch_(settings, processes) {}

  /// Call it, in the order of time, whenever something may have changed; `begun`: training has.
  void Check(bool begun, TimePoint now);

  /// All processes have ended, or are being killed.
  void OnEnded(TimePoint now);

  /// Takes in why members do not start, as StartWatch does.
  void Explain(const std::map<SlotId, std::string>& why) { watch_.Explain(why); }

  /// Returns when Check may find more though nothing happens, while training has not begun.
  [[nodiscard]] std::optional<TimePoint> NextTimer() const { return watch_.NextTimer(); }

  /// Returns when a released job that has ended is to begin again. nullopt: not by itself.
  [[nodiscard]] std::optional<TimePoint> BeginsAgainAt() const { return begins_again_at_; }

 private:
  void Release(const std::string& why);

  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;
  Outcome& outcome_;
  StartWatch watch_;
  std::optional<TimePoint> begins_again_at_;
};

}  // namespace adamant::controller
