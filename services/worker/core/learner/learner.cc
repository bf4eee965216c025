#include "services/worker/core/learner/learner.h"

#include <algorithm>
#include <utility>

#include "services/worker/core/learner/local_update.h"

namespace adamant::worker {

Learner::Learner(const WorkerOptions& options,
                 const model::Graph& graph,
                 const ShardLayout& layout,
                 const UpdatePlan& plan,
                 std::function<void()> wake_loop)
    : options_(options),
      graph_(graph),
      layout_(layout),
      plan_(plan),
      wake_loop_(std::move(wake_loop)),
      weights_(plan.elements),
      fetch_(plan.elements),
      ahead_(options.correct ? plan.elements : 0),
      look_ahead_{.ahead = ahead_.span()},
      evaluation_(plan.elements),
      dead_units_(WatchedLayersOf(graph, plan), options.threads),
      guidance_(options.push_every),
      fetch_points_(options.fetch_every * options.threads),
      weight_age_(options.batch_size) {
  for (std::size_t i = 0; i < options_.threads; ++i) {
    channels_.push_back(std::make_unique<ThreadChannel>());
  }
}

std::uint64_t Learner::PushEvery() const {
  return options_.choose_push ? std::min(guidance_.Get().exchange_every, options_.push_every)
                              : options_.push_every;
}

std::uint64_t Learner::FetchEvery() const {
  return options_.choose_fetch ? std::min(guidance_.Get().exchange_every, options_.fetch_every)
                               : options_.fetch_every;
}

Accumulator* Learner::TakeAccumulator(std::size_t thread) {
  Accumulator* const accumulator = channels_[thread]->TakeFree();
  if (accumulator != nullptr) {
    accumulator->ordinal.store(ordinals_.fetch_add(1, std::memory_order_relaxed) + 1,
                               std::memory_order_relaxed);
  }
  return accumulator;
}

std::uint64_t Learner::CountStep() {
  return fetch_points_.OnStep([this] { return FetchEvery() * options_.threads; });
}

void Learner::ApplyFetch(std::span<float> scratch, std::vector<Accumulator*>& live) {
  live.clear();
  for (const auto& channel : channels_) {
    for (const auto& accumulator : channel->accumulators()) {
      if (accumulator->live.load(std::memory_order_acquire)) {
        live.push_back(accumulator.get());
      }
    }
  }
  std::ranges::sort(live, {}, [](const Accumulator* accumulator) {
    return accumulator->ordinal.load(std::memory_order_relaxed);
  });
  look_ahead_.factor = guidance_.Get().look_ahead;
  TakeFetched(live, scratch);
}

void Learner::ReplaceWeights(std::span<Accumulator* const> accumulators, std::span<float> scratch) {
  // What was looked ahead goes with the weights of before.
  std::ranges::fill(look_ahead_.ahead, 0.0f);
  look_ahead_ = {.ahead = look_ahead_.ahead};
  TakeFetched(accumulators, scratch);
}

void Learner::TakeFetched(std::span<Accumulator* const> accumulators, std::span<float> scratch) {
  ApplyFetched(plan_,
               layout_,
               accumulators,
               {.fetched = fetch_.values(), .weights = weights_.span(), .scratch = scratch},
               look_ahead_);
}

void Learner::EndReset() {
  fetch_points_.Drop();
  commands_.EndReset();
}

}  // namespace adamant::worker
