#pragma once

#include <string>

#include "absl/status/status.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"

namespace adamant::controller {

/// Decides how a job ends, in its state: the first word counts, what comes after it changes
/// nothing. Threads: one thread at a time.
class Outcome {
 public:
  /// The arguments must outlive this.
  Outcome(JobState& state, Outbox& outbox) : state_(state), outbox_(outbox) {}

  /// Returns true if the job has ended, or is to.
  [[nodiscard]] bool IsDecided() const { return IsFinal(state_.phase); }

  void End(Phase phase, std::string message, EndKind end = EndKind::kOther);

  /// The job has failed if `status` is an error, with its message.
  void FailOn(const absl::Status& status, EndKind end = EndKind::kOther);

  /// The same, of a process that was lost: ResourceExhausted where no restart is left.
  void FailOnLoss(const absl::Status& status);

  /// Fails the job for what is wrong with the manifest or its data, whoever has found it.
  void FailAsInvalid(std::string message);

 private:
  JobState& state_;
  Outbox& outbox_;
};

}  // namespace adamant::controller
