#pragma once

#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "operator/cli/kubectl/cluster/session.h"

namespace adamant::kubectl {

/// Lets a command that follows a job outlive an API that does not answer for a while. What fails is
/// tried again, whatever the reason: one that starts also refuses, or knows no TrainingJobs yet.
/// Threads: one thread at a time.
class Outage {
 public:
  static constexpr std::chrono::seconds kPause{1};    ///< between two tries
  static constexpr std::chrono::minutes kLongest{5};  ///< for which is tried

  /// `session` must outlive this.
  explicit Outage(const Session& session) : session_(session) {}

  /// It answers.
  void End();

  /// Waits before the next try. Errors: `error`, where it never answered before, has not answered
  /// for kLongest, or says that what is followed is not there; Cancelled when the user stops it.
  absl::Status Wait(const absl::Status& error);

 private:
  const Session& session_;
  bool answered_ = false;
  std::optional<Clock::TimePoint> since_;
};

}  // namespace adamant::kubectl
