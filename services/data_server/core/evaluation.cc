#include "services/data_server/core/evaluation.h"

namespace adamant::data_server {

Evaluation::Evaluation(const Evaluate& command,
                       std::uint32_t examples,
                       std::uint32_t batch_size,
                       std::uint64_t most_frequent)
    : command_(command),
      examples_(examples),
      most_frequent_(most_frequent),
      results_(examples / batch_size + (examples % batch_size != 0 ? 1 : 0)),
      left_(static_cast<std::uint32_t>(results_.size())) {
  queue_ = BatchQueue(std::vector<bool>(results_.size()));
}

BatchId Evaluation::Batch(std::uint32_t index) const {
  return {.kind = WorkKind::kEvaluate, .epoch = command_.epoch, .part = 0, .index = index};
}

bool Evaluation::Count(const LeaseResult& result) {
  const auto dispatched = leases_.find(result.lease.id);
  if (dispatched == leases_.end() || result.lease.batch != Batch(dispatched->second) ||
      !queue_.MarkDone(dispatched->second)) {
    return false;
  }
  results_[dispatched->second] = {result.loss_sum, result.correct};
  --left_;
  return true;
}

Evaluated Evaluation::Sum() const {
  Evaluated sum{.epoch = command_.epoch,
                .snapshot = command_.snapshot,
                .examples = examples_,
                .correct = 0,
                .loss_sum = 0,
                .most_frequent = most_frequent_};
  for (const Result& result : results_) {
    sum.correct += result.correct;
    sum.loss_sum += result.loss_sum;
  }
  return sum;
}

}  // namespace adamant::data_server
