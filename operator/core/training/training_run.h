#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/buckets/placement.h"
#include "operator/core/diagnosis/divergence_watch.h"
#include "operator/core/diagnosis/training_meter.h"
#include "operator/core/processes/disk_alarms.h"
#include "operator/core/processes/process_starter.h"
#include "operator/core/processes/process_table.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/outcome.h"
#include "operator/core/state/state.h"
#include "operator/core/training/epoch_sequence.h"
#include "operator/core/training/going_back.h"
#include "operator/core/training/parts.h"

namespace adamant::controller {

/// The training of a job: begins when all buckets are served, all parts are dispatched and a worker
/// is there, follows what happens to them, goes back where it must, and ends the job with its model
/// or with why there is none. Threads: one thread at a time.
class TrainingRun {
 public:
  using TimePoint = Clock::TimePoint;

  /// The arguments must outlive this.
  TrainingRun(const JobSettings& settings,
              JobState& state,
              Outbox& outbox,
              ProcessTable& processes,
              ProcessStarter& starter,
              Placement& placement,
              Outcome& outcome);

  /// As EpochSequence says.
  [[nodiscard]] bool HasMore() const { return sequence_.HasMore(); }

  /// A job that had ended begins again. `anew`: not as it was released, so that what follows from
  /// how it ended is due, as GoingBack::Resume.
  void Resume(bool anew);

  /// The state says that the job goes back: what is known of its processes ends.
  void GoBack(const std::vector<StartProcess>& running, TimePoint now) {
    going_back_.Begin(running, now);
  }

  /// The current step's commands have been sent.
  [[nodiscard]] bool begun() const { return begun_; }

  /// All processes are being ended, as the job goes back: none may join.
  [[nodiscard]] bool ending() const { return going_back_.ending(); }

  // What happens.

  void OnJoined(const Join& join, TimePoint now);

  /// Answers to another controller's commands are ignored: the step's command is sent again.
  void OnMessage(SlotId from, const MemberMessage& message, TimePoint now);

  /// Returns whether training has diverged.
  bool OnWorker(SlotId from, const WorkerProgress& progress, TimePoint now);
  void OnDataServer(SlotId from, const DataServerProgress& progress, TimePoint now);

  /// As DiskAlarms.
  void OnAlarm(SlotId server, const std::string& alarm, TimePoint now);
  void OnStored(SlotId server, const StoredBuckets& stored) { alarms_.OnStored(server, stored); }
  void OnDamages(SlotId server, const std::vector<std::string>& damages) {
    alarms_.OnDamages(server, damages);
  }

  /// Training has diverged; `found` says how.
  void OnDiverged(DataEpoch epoch, const std::string& found, TimePoint now);

  void OnExported(const Exported& event, TimePoint now);

  /// The member's process is gone, and with it what was expected of it.
  void OnLost(SlotId id, TimePoint now);

  /// This controller was held up: nobody has been heard meanwhile.
  void OnHeldUp(TimePoint now);

  void RequestCheckpoint(TimePoint now) { sequence_.RequestCheckpoint(now); }
  void OnIntervalChanged(std::chrono::milliseconds before) { sequence_.OnIntervalChanged(before); }

  // What follows.

  /// Tells everybody who is there now, and who dispatches which part.
  void PublishMembers(TimePoint now);

  /// Concludes what follows for the buckets, and tells the members; begins, if all is there.
  void Settle(TimePoint now);

  /// Starts the processes that are due, and what is due of the step.
  void OnTimer(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> NextTimer() const { return sequence_.NextTimer(); }

  [[nodiscard]] const TrainingMeter& meter() const { return meter_; }
  [[nodiscard]] const DiskAlarms& alarms() const { return alarms_; }

 private:
  void OnSettled(const absl::Status& status, TimePoint now);
  void BeginWhenReady(TimePoint now);
  void OnDataMessage(const MemberMessage& message, TimePoint now);
  void EndWithModel();

  /// If all processes are being ended, training is to begin anew.
  void StopIfEnding();

  const JobSettings& settings_;
  JobState& state_;
  ProcessTable& processes_;
  ProcessStarter& starter_;
  Placement& placement_;
  Outcome& outcome_;
  Outbox& outbox_;
  DiskAlarms alarms_;
  Parts parts_;
  TrainingMeter meter_;
  DivergenceWatch watch_;
  EpochSequence sequence_;
  GoingBack going_back_;
  bool begun_ = false;
};

}  // namespace adamant::controller
