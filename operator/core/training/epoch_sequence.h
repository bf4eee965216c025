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
#include "operator/core/processes/process_table.h"
#include "operator/core/training/checkpoint_taker.h"
#include "operator/core/training/epoch_closing.h"
#include "operator/core/training/export_coordinator.h"
#include "operator/core/training/parts.h"
#include "operator/core/training/result_recorder.h"
#include "operator/core/training/snapshot_coordinator.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// Leads the job from epoch to epoch: open, close, flush, snapshot, evaluate, decide, export.
/// Each step waits for answers and may be repeated: answers to another step or epoch are ignored.
/// An error of any member fails the job with its message.
/// Threads: one thread at a time.
class EpochSequence {
 public:
  using TimePoint = Clock::TimePoint;

  /// The arguments must outlive this.
  EpochSequence(const JobSettings& settings,
                JobState& state,
                Outbox& outbox,
                ProcessTable& processes,
                Parts& parts,
                Placement& placement,
                TrainingMeter& meter,
                DivergenceWatch& watch);

  /// The buckets have come back as the state's checkpoint has them: goes back to that moment.
  void OnWentBack();

  /// The job goes back: its processes end, and nothing is waited for any more. Begin follows.
  void Abandon();

  /// Sends the commands of the step that the state names: at the start of a job and of every
  /// controller.
  void Begin(TimePoint now);

  /// A job whose last epoch has ended has more of them now, or another target: the next one is to
  /// be opened, of a model that is to be exported no more.
  [[nodiscard]] bool HasMore() const;
  void GoOn();

  /// Sends the current command, if there is one, to a member that may not have it.
  void Repeat(SlotId id);
  void RepeatAll(Role role);

  /// The owner of part 0 says which epoch the data tier has decided on: goes on with that one if it
  /// is later than the state's. While no controller was there it has closed epochs itself, and says
  /// what they counted; or an earlier controller had opened it and could not store that, and the
  /// results of the epochs between are lost. What was trained in them is not.
  void Adopt(const DataServerProgress& progress, TimePoint now);

  /// This controller was held up: the data tier may have gone on without it, and workers may push
  /// again.
  void OnHeldUp();

  /// A data server is lost; it may live and go on, so the closing begins anew.
  void OnDataServerLost();

  void OnEpochEnded(const EpochEnded& message);
  void OnPartClosed(const PartClosed& message) { closing_.OnPartClosed(message); }
  void OnWorkerFlushed(std::uint32_t worker, const WorkerFlushed& message) {
    closing_.OnWorkerFlushed(worker, message);
  }
  void OnPushesPaused(std::uint32_t worker, const PushesPaused& message, TimePoint now);
  absl::Status OnSnapshotTaken(std::uint32_t server, const SnapshotTaken& message, TimePoint now);

  /// Returns what the result says of training that has diverged: then the sequence goes on only if
  /// the job is to continue nevertheless.
  std::optional<std::string> OnEvaluated(const Evaluated& message, TimePoint now);

  /// As ExportCoordinator says: the job has succeeded if the model is written.
  [[nodiscard]] std::optional<absl::Status> OnExported(const Exported& exported, TimePoint now) {
    return exports_.OnExported(exported, now);
  }

  /// Nothing more is expected of this worker.
  void OnWorkerLost(std::uint32_t worker);

  /// Configurations have changed, or buckets are served again.
  void OnConfigurationsChanged();

  /// A checkpoint is wanted that begins from now on.
  void RequestCheckpoint(TimePoint now) { checkpoints_.Request(now); }

  /// checkpoint_interval was another before.
  void OnIntervalChanged(std::chrono::milliseconds before) {
    checkpoints_.OnIntervalChanged(before);
  }

  /// Repeats snapshots and exports, and takes checkpoints that are due.
  void OnTimer(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> NextTimer() const;

 private:
  void TakeFirstWeights();
  void OnSnapshotStored(TimePoint now);
  void OnCheckpoint(TimePoint now);
  void Accept(bool healthy, TimePoint now);
  void OpenNext(TimePoint now);
  void StartClosing();

  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;
  ProcessTable& processes_;
  Parts& parts_;
  Placement& placement_;
  TrainingMeter& meter_;
  DivergenceWatch& watch_;

  std::vector<std::uint64_t> generations_;  // of the buckets, when the first weights were asked for
  SnapshotCoordinator snapshots_;
  CheckpointTaker checkpoints_;
  ResultRecorder results_;
  EpochClosing closing_;
  ExportCoordinator exports_;
};

}  // namespace adamant::controller
