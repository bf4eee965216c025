#include "services/worker/core/learner/model_runner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "services/common/base/failpoint.h"
#include "services/common/base/rng.h"
#include "services/common/base/status_macros.h"

namespace adamant::worker {

ModelRunner::ModelRunner(Learner& learner,
                         const Intake& intake,
                         std::size_t thread,
                         std::unique_ptr<graph::Context> context)
    : plan_(learner.plan()),
      intake_(intake),
      weights_(learner.weights()),
      seed_(learner.options().seed),
      context_(std::move(context)),
      state_(plan_.StateSize()),
      pending_(learner.options().share_every > 1 ? plan_.elements : 0),
      scratch_(UpdatePlan::kBlock),
      update_(plan_,
              {.weights = weights_,
               .state = state_.span(),
               .pending = pending_.span(),
               .scratch = scratch_.span()},
              {.share_every = learner.options().share_every,
               .alone = learner.threads() == 1,
               .start = static_cast<double>(thread) / static_cast<double>(learner.threads())}),
      dead_units_(learner.dead_units(), thread, update_) {}

absl::StatusOr<std::unique_ptr<ModelRunner>> ModelRunner::Create(Learner& learner,
                                                                 const Intake& intake,
                                                                 std::size_t thread) {
  ADAMANT_ASSIGN_OR_RETURN(
      std::unique_ptr<graph::Context> context,
      graph::Context::Create(learner.graph(),
                             static_cast<std::int64_t>(learner.options().batch_size),
                             learner.options().backend,
                             /*training=*/true));
  return std::unique_ptr<ModelRunner>(new ModelRunner(learner, intake, thread, std::move(context)));
}

void ModelRunner::Load(const Batch& batch) {
  const BatchFormat& format = intake_.format();
  Normalise(intake_.normalisation(),
            format.example_bytes / format.channels,
            std::span(batch.pixels).first(batch.examples * format.example_bytes),
            context_->input());
  std::copy_n(batch.labels.begin(), batch.examples, context_->labels().begin());
}

graph::StepResult ModelRunner::Train(const Batch& batch, Accumulator& accumulator) {
  const Lease& lease = batch.lease;
  update_.Begin(batch.progress(), accumulator);
  const graph::StepResult result =
      context_->Train(batch.examples,
                      weights_,
                      dead_units_.Begin(),
                      MixSeed(seed_, lease.batch.epoch, lease.batch.part, lease.batch.index));
  dead_units_.End();
  if (!ADAMANT_FAILPOINT_STATUS("train/step").ok()) {
    weights_.front() = std::numeric_limits<float>::quiet_NaN();
  }
  KeepRows(batch.examples, accumulator);
  return result;
}

graph::StepResult ModelRunner::Evaluate(const Batch& batch, std::span<const float> weights) {
  return context_->Evaluate(batch.examples, weights);
}

void ModelRunner::ResetState() { std::ranges::fill(state_.span(), 0.0f); }

void ModelRunner::KeepRows(std::uint64_t examples, Accumulator& accumulator) {
  for (std::size_t i = 0; i < plan_.tensors.size(); ++i) {
    const TensorPlan& tensor = plan_.tensors[i];
    if (tensor.activations) {
      const auto operands = context_->OperandsOf(static_cast<int>(i));
      Accumulator::Rows& rows = accumulator.rows[i];
      std::ranges::copy(
          operands.activations,
          rows.activations.span().subspan(accumulator.filled_rows * tensor.inputs).begin());
      std::ranges::copy(
          operands.errors,
          rows.errors.span().subspan(accumulator.filled_rows * tensor.outputs).begin());
    }
  }
  accumulator.filled_rows += examples;
}

}  // namespace adamant::worker
