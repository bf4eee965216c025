#pragma once

#include <vector>

#include "operator/core/processes/process_starter.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/outcome.h"
#include "operator/core/training/data_identity.h"

namespace adamant::controller {

/// Takes what data servers report of the data, and fails the job where they do not read the same.
/// Starts the others once it is known how long the job is.
/// Threads: one thread at a time.
class DataReports {
 public:
  /// The arguments must outlive this.
  DataReports(const JobSettings& settings,
              JobState& state,
              Outbox& outbox,
              ProcessStarter& starter,
              Outcome& outcome)
      : settings_(settings), starter_(starter), outcome_(outcome), data_(settings, state, outbox) {}

  void OnProgress(SlotId from, const DataServerProgress& progress, Clock::TimePoint now);

  /// As DataIdentity says.
  void AcceptOthers() { data_.AcceptOthers(); }
  [[nodiscard]] std::vector<DataFile> Binding() const { return data_.Binding(); }

 private:
  const JobSettings& settings_;
  ProcessStarter& starter_;
  Outcome& outcome_;
  DataIdentity data_;
};

}  // namespace adamant::controller
