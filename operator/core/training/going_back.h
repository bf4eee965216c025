#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/buckets/placement.h"
#include "operator/core/diagnosis/divergence_watch.h"
#include "operator/core/diagnosis/training_meter.h"
#include "operator/core/processes/full_restart.h"
#include "operator/core/processes/process_table.h"
#include "operator/core/training/epoch_sequence.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// Response to training that diverges: the job goes back to a model from before and on with half
/// the rate, fails, or goes on as it is. And to the loss of parameters of which only checkpoints
/// are stored: it goes back to the newest. To go back all processes end, and none starts before.
/// Threads: one thread at a time.
/// Source: docs/design/0010-divergence.md.
class GoingBack {
 public:
  using TimePoint = Clock::TimePoint;

  /// The arguments must outlive this.
  GoingBack(const JobSettings& settings,
            JobState& state,
            Outbox& outbox,
            ProcessTable& processes,
            Placement& placement,
            EpochSequence& sequence,
            TrainingMeter& meter,
            DivergenceWatch& watch);

  /// A job that had ended begins again: one that ended as training diverged goes back first, under
  /// Recover with half the rate. Returns whether it does.
  bool Resume();

  /// Tells where to it does, and at which rate.
  void TellResumed();

  /// The state says that the job goes back: what is known of its processes ends.
  void Begin(const std::vector<StartProcess>& running, TimePoint now);

  /// Training has diverged; `found` says how. Error: the job fails with this message.
  absl::Status OnDiverged(DataEpoch epoch, const std::string& found, TimePoint now);

  /// Placement cannot bring a bucket back. Where only checkpoints are stored, or nothing is
  /// left of what came after the newest (Aborted), the job goes back to it; while it goes back it
  /// falls back to an older model; else, and where there is none, that is the error with which it
  /// fails.
  absl::Status OnLostBucket(const absl::Status& why, TimePoint now);

  /// A parameter server is lost: it may have held what nobody else has yet.
  void OnServerLost(TimePoint now);

  /// The job begins.
  void OnBegun();

  void OnTimer() { ending_ = ending_ && !restart_.AllEnded(); }

  /// All processes are being ended: none may start or join.
  [[nodiscard]] bool ending() const { return ending_; }

 private:
  void GoBack(TimePoint now);
  absl::Status FallBackFurther(const absl::Status& why, TimePoint now);
  void EndAll(TimePoint now);

  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;
  FullRestart restart_;
  Placement& placement_;
  EpochSequence& sequence_;
  TrainingMeter& meter_;
  DivergenceWatch& watch_;
  bool ending_ = false;
  DataEpoch told_epoch_ = 0;  // for which the user knows
};

}  // namespace adamant::controller
