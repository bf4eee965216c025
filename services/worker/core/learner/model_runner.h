#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/graph/context.h"
#include "services/worker/core/base/accumulator.h"
#include "services/worker/core/base/float_buffer.h"
#include "services/worker/core/intake/intake.h"
#include "services/worker/core/learner/dead_units.h"
#include "services/worker/core/learner/learner.h"
#include "services/worker/core/learner/local_update.h"

namespace adamant::worker {

/// Runs the model for one training thread: forward for an evaluation, and backward for a step on
/// the shared weights. All its memory is taken by Create, on that thread; then nothing allocates or
/// locks. Threads: one.
class ModelRunner {
 public:
  /// `learner` and `intake` must outlive this; `thread` is the thread's index. Errors: as
  /// graph::Context::Create.
  static absl::StatusOr<std::unique_ptr<ModelRunner>> Create(Learner& learner,
                                                             const Intake& intake,
                                                             std::size_t thread);

  /// Makes this batch the input.
  void Load(const Batch& batch);

  /// Takes a step on the batch that was loaded: changes the weights, and adds to `accumulator` what
  /// a push of it needs.
  graph::StepResult Train(const Batch& batch, Accumulator& accumulator);

  /// Evaluates `weights` on the batch that was loaded.
  graph::StepResult Evaluate(const Batch& batch, std::span<const float> weights);

  // --- What steps have changed (LocalUpdate)

  [[nodiscard]] bool shared() const { return update_.shared(); }
  void Settle() { update_.Settle(); }
  void Flush() { update_.Flush(); }

  /// Forgets the state of the rules.
  void ResetState();

  /// UpdatePlan::kBlock, for whoever runs this.
  [[nodiscard]] std::span<float> scratch() { return scratch_.span(); }

  /// Returns how the layers of the net are executed (graph::KernelList).
  [[nodiscard]] std::string Kernels() const { return graph::KernelList(context_->Nodes()); }

 private:
  ModelRunner(Learner& learner,
              const Intake& intake,
              std::size_t thread,
              std::unique_ptr<graph::Context> context);
  void KeepRows(std::uint64_t examples, Accumulator& accumulator);

  const UpdatePlan& plan_;
  const Intake& intake_;
  const std::span<float> weights_;
  const std::uint64_t seed_;
  const std::unique_ptr<graph::Context> context_;
  FloatBuffer state_;
  FloatBuffer pending_;
  FloatBuffer scratch_;
  LocalUpdate update_;
  DeadUnitSampler dead_units_;
};

}  // namespace adamant::worker
