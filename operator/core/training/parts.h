#pragma once

#include "operator/core/processes/process_table.h"
#include "operator/core/state/state.h"

namespace adamant::controller {

/// Assignment of the parts of the training data to the data servers that dispatch them.
/// Threads: one thread at a time.
class Parts {
 public:
  /// The arguments must outlive this.
  Parts(const JobSettings& settings, JobState& state, Outbox& outbox, const ProcessTable& processes)
      : settings_(settings), state_(state), outbox_(outbox), processes_(processes) {}

  /// Gives parts of data servers that do not run to running ones. While the job starts there is
  /// nothing to gain from it: their owners are on their way. Returns whether anything changed.
  bool Reassign();

  /// Gives each part back to the data server of its own number, where that one runs. Only between
  /// epochs: a part that moves takes its leases down. Returns whether anything changed.
  bool Rebalance();

  /// Every part has an owner that has loaded its data.
  [[nodiscard]] bool Started() const;

 private:
  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;
  const ProcessTable& processes_;
};

}  // namespace adamant::controller
