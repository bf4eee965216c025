#pragma once

#include <functional>
#include <vector>

#include "services/worker/core/worker.h"
#include "tests/simulation/job/processes/world.h"

namespace adamant::simulation {

/// A training thread without arithmetic: takes the steps of worker::TrainingThread in its order,
/// and each batch adds 1 to its own element of every trained shard. A batch takes virtual time.
/// Threads: one.
class Trainer {
 public:
  /// `world` and `core` must outlive this; `after` is called whenever it may have rung a notifier.
  Trainer(World& world,
          worker::Worker& core,
          std::size_t index,
          WorkerId worker,
          LifePtr life,
          std::function<void()> after);

  /// Goes on if the notifier has rung since it blocked.
  void Wake();

  /// Called with every trained batch (kEarlyAcknowledge).
  std::function<void(const worker::Lease&)> on_trained = [](const worker::Lease&) {};

 private:
  enum class Progress { kWorked, kBusy, kBlocked, kStopped };

  void Run();
  Progress Advance();
  Progress Reset(std::uint64_t generation);
  Progress Stop();
  bool MeetFetchPoint();
  Progress WorkOnBatch();
  Progress BeginEvaluation();
  void FinishEvaluation();
  void FinishTraining();
  void AddUpdate(std::uint32_t element, bool poisoned);
  void KeepRows(const worker::TensorPlan& tensor, std::size_t index, std::uint32_t element);
  void ApplyFetch();
  void FinishBatch();
  void HandOver(worker::ThreadEvent::Kind kind);
  void Emit(const worker::ThreadEvent& event);
  void Later(void (Trainer::*step)());

  World& world_;
  worker::Learner& learner_;
  worker::Intake& intake_;
  const std::size_t index_;
  const WorkerId worker_;
  const LifePtr life_;
  const std::function<void()> after_;
  worker::ThreadChannel& channel_;
  std::vector<float> scratch_;
  std::vector<worker::Accumulator*> live_;  // scratch of ApplyFetch

  worker::Accumulator* accruing_ = nullptr;
  worker::Batch* batch_ = nullptr;
  std::uint64_t fetch_point_ = 0;
  std::uint64_t reset_ = 0;
  std::uint64_t flushed_ = 0;
  std::uint32_t seen_ = 0;  // of the notifier, when it blocked
  bool blocked_ = true;
  bool busy_ = false;
  bool stopped_ = false;
};

}  // namespace adamant::simulation
