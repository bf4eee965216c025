#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/graph/context.h"
#include "services/worker/core/intake/intake.h"
#include "services/worker/core/learner/learner.h"
#include "services/worker/core/learner/model_runner.h"

namespace adamant::worker {

/// One training thread of a learner, as a state machine that never blocks; Run adds the waiting.
/// All its memory is taken by Create, on the thread that trains; then nothing allocates or locks.
/// Threads: one.
class TrainingThread {
 public:
  /// `learner`, `intake` and `clock` must outlive this; `index` is the thread's. Errors: as
  /// graph::Context::Create.
  static absl::StatusOr<std::unique_ptr<TrainingThread>> Create(Learner& learner,
                                                                Intake& intake,
                                                                std::size_t index,
                                                                const Clock& clock);

  enum class Progress {
    kWorked,
    kBlocked,  ///< until the notifier rings
    kStopped,  ///< for good
  };

  /// Does the next thing: a step, an evaluation, a transfer, a fetch, or what a command asks.
  Progress Advance();

  /// Advances until stopped.
  void Run();

  /// As ModelRunner::Kernels.
  [[nodiscard]] std::string Kernels() const { return runner_->Kernels(); }

 private:
  TrainingThread(Learner& learner,
                 Intake& intake,
                 std::size_t index,
                 const Clock& clock,
                 std::unique_ptr<ModelRunner> runner);

  Progress Block(ThreadStatistics::Wait reason);
  Progress Reset(std::uint64_t generation);
  Progress Stop();
  bool ApplyIfReady();
  bool MeetFetchPoint();
  Progress WorkOnBatch();
  bool Evaluate(const Batch& batch);
  void Train(const Batch& batch);
  bool Outdated(const Batch& batch);
  void NoteDuration(Clock::TimePoint begin);
  void Count(const Batch& batch, const graph::StepResult& result);
  void HandOver(ThreadEvent::Kind kind);
  void Emit(const ThreadEvent& event);
  void ApplyFetch();

  Learner& learner_;
  Intake& intake_;
  const std::size_t index_;
  const Clock& clock_;
  const std::unique_ptr<ModelRunner> runner_;
  ThreadChannel& channel_;
  std::vector<Accumulator*> live_;  // scratch of ApplyFetch

  Accumulator* accruing_ = nullptr;
  Batch* batch_ = nullptr;         // taken, but waits for its snapshot
  std::uint64_t fetch_point_ = 0;  // to be met; 0: none
  std::uint64_t reset_ = 0;        // last one answered
  std::uint64_t flushed_ = 0;      // last one answered
  bool stopped_ = false;
  std::uint64_t outdated_ = 0;  // job_examples for which new values were asked for
  bool awaits_reset_ = false;   // that follows from it
  double step_seconds_ = 0;     // moving mean
  ThreadStatistics::Wait waits_for_ = ThreadStatistics::kForCommand;
};

}  // namespace adamant::worker
