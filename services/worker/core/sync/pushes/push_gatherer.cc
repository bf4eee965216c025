#include "services/worker/core/sync/pushes/push_gatherer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "services/common/optimiser/rules.h"

namespace adamant::worker {
namespace {

bool RunsHere(const TensorPlan& tensor) {
  return tensor.trained && tensor.optimiser.location == OptimiserLocation::kWorker;
}

// A logit may overflow, and the loss with it, while all gradients are numbers.
bool LossesAreFinite(const std::vector<LeaseResult>& results) {
  return std::ranges::all_of(
      results, [](const LeaseResult& result) { return std::isfinite(result.loss_sum); });
}

}  // namespace

std::uint64_t GatheredPush::examples() const {
  std::uint64_t examples = 0;
  for (const LeaseResult& result : results) {
    examples += result.examples;
  }
  return examples;
}

std::optional<GatheredPush> PushGatherer::Gather() {
  std::vector<PushContent::Part> parts = FindParts();
  if (parts.empty()) {
    return std::nullopt;
  }
  Take(parts);
  Freshen(*parts.front().accumulator);
  GatheredPush push;
  std::vector<Accumulator*> accumulators;
  for (const PushContent::Part& part : parts) {
    accumulators.push_back(part.accumulator);
    push.results.insert(
        push.results.end(), part.accumulator->results.begin(), part.accumulator->results.end());
  }
  push.culprit = FindNotFinite(learner_.plan(), learner_.layout(), accumulators);
  push.finite = push.culprit == nullptr && LossesAreFinite(push.results);
  push.content = std::make_unique<PushContent>();
  push.content->parts = std::move(parts);
  return push;
}

std::vector<PushContent::Part> PushGatherer::FindParts() {
  const std::size_t threads = learner_.threads();
  std::vector<PushContent::Part> parts;
  for (std::size_t i = 0; i < threads && parts.size() < learner_.plan().max_summed; ++i) {
    const std::size_t thread = (next_thread_ + i) % threads;
    const ThreadEvent* const event = learner_.channel(thread).Front();
    if (event != nullptr && event->kind == ThreadEvent::Kind::kPush) {
      parts.push_back({.accumulator = event->accumulator, .thread = thread});
    }
  }
  // While a thread applies a fetch no sums may move, and one thread's is all that is taken.
  if (parts.size() > 1 && !learner_.fetch().Hold()) {
    parts.resize(1);
  }
  return parts;
}

// The first one's accumulator gets the sum.
void PushGatherer::Take(const std::vector<PushContent::Part>& parts) {
  const std::size_t next = parts.back().thread + 1;
  next_thread_ = next < learner_.threads() ? next : 0;
  Accumulator& sum = *parts.front().accumulator;
  for (const PushContent::Part& part : parts) {
    learner_.channel(part.thread).Pop();
    if (part.accumulator != &sum) {
      Sum(learner_.plan(), *part.accumulator, sum);
      sum.progress.store(std::max(sum.progress.load(), part.accumulator->progress.load()));
      part.accumulator->live.store(false, std::memory_order_release);
    }
  }
  learner_.fetch().Release();
}

// What was computed before this process stood still for long has become worth less.
void PushGatherer::Freshen(Accumulator& sum) const {
  const float freshness = asynchrony_.FreshnessAfter(sum.stood_still);
  if (freshness == 1) {
    return;
  }
  for (const TensorPlan& tensor : learner_.plan().tensors) {
    if (RunsHere(tensor)) {
      Scale(freshness, sum.values.span().subspan(tensor.offset, tensor.size));
    } else {
      sum.correction.rate *= freshness;
      break;  // all rules run on one side
    }
  }
}

// Where the rule runs here servers only add, and have no use for the memory: servers of before
// refuse one below 1, which is a worker's alone.
Correction PushGatherer::CorrectionFor(const Accumulator& sum) const {
  Correction correction = sum.correction;
  if (std::ranges::any_of(learner_.plan().tensors, RunsHere)) {
    correction.memory = 1;
  }
  return correction;
}

}  // namespace adamant::worker
