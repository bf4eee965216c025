#pragma once

#include <cstdint>
#include <functional>

#include "services/common/base/ids.h"
#include "services/common/model/model.h"
#include "services/common/tensor/shard_layout.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/base/update_plan.h"
#include "services/worker/core/base/worker_options.h"
#include "services/worker/core/intake/intake.h"
#include "services/worker/core/learner/learner.h"
#include "services/worker/core/sync/synchroniser.h"

namespace adamant::worker {

/// One worker of a job: batches come through the intake, the learner trains on them, and the
/// synchroniser exchanges what it learned with the parameter servers.
/// Threads: as those of the three; what is here belongs to the synchroniser's.
class Worker {
 public:
  struct Options {
    WorkerOptions training = {};
    SynchroniserOptions synchroniser = {};
  };

  /// `graph`, `layout` and `plan` must outlive this, as do those of Learner, and this all payloads
  /// (PushStore). `wake_loop`: as of Learner.
  Worker(const Options& options,
         const model::Graph& graph,
         const ShardLayout& layout,
         const UpdatePlan& plan,
         std::function<void()> wake_loop);

  Learner& learner() { return learner_; }
  [[nodiscard]] const Learner& learner() const { return learner_; }
  Intake& intake() { return intake_; }
  Synchroniser& synchroniser() { return synchroniser_; }
  [[nodiscard]] const Synchroniser& synchroniser() const { return synchroniser_; }

  /// Notes where buckets and parts live from now on, and how many workers run.
  void OnPlacement(const PlacementView& placement);

  /// Everything of epochs up to this one is to be pushed or dropped; Synchroniser::TakeFlushed says
  /// when it is.
  void Flush(DataEpoch epoch);

 private:
  Learner learner_;
  Intake intake_;
  Synchroniser synchroniser_;
};

}  // namespace adamant::worker
