#pragma once

#include <chrono>
#include <optional>

#include "operator/core/processes/process_table.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"

namespace adamant::controller {

/// Watches that processes join, and are heard, in time.
/// Threads: one thread at a time.
class SilenceWatch {
 public:
  using TimePoint = Clock::TimePoint;

  /// A new member may load data for this time before it says anything more.
  static constexpr std::chrono::milliseconds kLoadTimeout{600'000};

  /// The arguments must outlive this.
  SilenceWatch(const JobSettings& settings, Outbox& outbox, ProcessTable& processes)
      : settings_(settings), outbox_(outbox), processes_(processes) {}

  /// Something was heard of this slot.
  void OnHeartbeat(ProcessTable::Slot& slot, TimePoint now) const;

  /// This slot is still loading its data, and may take its time. That it comes no further, and that
  /// it does again, is told once.
  void OnLoading(ProcessTable::Slot& slot, const Loading& loading, TimePoint now) const;

  /// A controller that was held up gives everybody time to be heard.
  void GrantTime(TimePoint now);

  /// The first slot whose process has neither joined in time nor been heard; nullptr if none.
  ProcessTable::Slot* FindSilent(TimePoint now);

  /// Returns when FindSilent must be asked again; nullopt: nobody is waited for.
  [[nodiscard]] std::optional<TimePoint> NextTimer() const;

 private:
  const JobSettings& settings_;
  Outbox& outbox_;
  ProcessTable& processes_;
};

}  // namespace adamant::controller
