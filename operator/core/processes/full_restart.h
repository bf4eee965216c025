#pragma once

#include <span>

#include "operator/core/processes/process_table.h"
#include "operator/core/state/actions.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Ends every process at no cost, and leaves its slot to be started again once all have ended.
/// Threads: one thread at a time.
class FullRestart {
 public:
  using TimePoint = Clock::TimePoint;

  /// `processes` must outlive this.
  explicit FullRestart(ProcessTable& processes) : processes_(processes) {}

  /// Ends all that there are. ProcessStarter::StartDue may follow once AllEnded.
  void EndAll(TimePoint now);

  /// As EndAll, by a controller that begins; nobody waits for the end of those not among `known`.
  void EndKnown(std::span<const StartProcess> known, TimePoint now);

  /// No process is left of those that were ended.
  [[nodiscard]] bool AllEnded() const;

 private:
  ProcessTable& processes_;
};

}  // namespace adamant::controller
