#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "operator/core/buckets/configurations.h"
#include "operator/core/processes/process_table.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"
#include "operator/core/training/result_recorder.h"
#include "operator/core/training/snapshot_coordinator.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// Steps from the end of an epoch, which the data tier decides (BatchScheduler::EpochIsComplete),
/// to its evaluation: its parts are closed, workers push what they have, its snapshot is stored,
/// and evaluated. Answers to another step or epoch are ignored. Threads: one thread at a time.
class EpochClosing {
 public:
  /// The arguments must outlive this.
  EpochClosing(JobState& state,
               Outbox& outbox,
               ProcessTable& processes,
               const Configurations& configurations,
               SnapshotCoordinator& snapshots,
               ResultRecorder& results);

  /// Begins with the first step.
  void Start();

  /// Begins anew, if one of the steps is being taken: what the data tier has said is not known to
  /// hold any more, and it is asked again whether it waits.
  void StartAgain();

  /// Waits for nothing any more.
  void Abandon();

  void OnPartClosed(const PartClosed& message);
  void OnWorkerFlushed(std::uint32_t worker, const WorkerFlushed& message);

  /// Expects nothing more of this worker.
  void OnWorkerLost(std::uint32_t worker) { Flushed(worker); }

  /// Has the snapshot, which is stored, evaluated.
  void StartEvaluating();

  /// Has workers flush again, and returns true, if a bucket has lost all its replicas since they
  /// did. Call it when configurations have changed.
  [[nodiscard]] bool OnConfigurationsChanged();

  /// Sends the step's command, if there is one, to a member that may not have it.
  void Repeat(SlotId id);

 private:
  void RepeatAll(Role role);
  [[nodiscard]] std::optional<ControllerMessage> CommandFor(SlotId id) const;
  void StartFlushing();
  void Flushed(std::uint32_t worker);
  void OnAllFlushed();
  void StartSnapshot();

  JobState& state_;
  Outbox& outbox_;
  ProcessTable& processes_;
  const Configurations& configurations_;
  SnapshotCoordinator& snapshots_;
  ResultRecorder& results_;

  std::set<std::uint32_t> open_parts_;         // kClosing: not yet closed
  std::set<std::uint32_t> unflushed_workers_;  // kFlushing
  std::vector<std::uint64_t> generations_;     // of the buckets, when the workers began to flush
};

}  // namespace adamant::controller
