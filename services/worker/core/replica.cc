#include "services/worker/core/replica.h"

#include <algorithm>
#include <string>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/tensor/shape.h"

namespace adamant::worker {
namespace {

std::size_t ElementsOf(const Shape& shape) {
  const auto count = ElementCount(shape);
  ADAMANT_CHECK(count.has_value(), "the graph's input was checked when it was built");
  return static_cast<std::size_t>(*count);
}

}  // namespace

Replica::Replica(const ReplicaOptions& options_in,
                 const model::Graph& graph_in,
                 const ShardLayout& layout_in,
                 const UpdatePlan& plan_in,
                 std::function<void()> wake_loop_in)
    : options(options_in),
      graph(graph_in),
      layout(layout_in),
      plan(plan_in),
      wake_loop(std::move(wake_loop_in)),
      example_bytes_(ElementsOf(graph_in.input)),
      weights(plan_in.elements),
      fetch(plan_in.elements),
      ahead(options_in.correct ? plan_in.elements : 0),
      look_ahead{.ahead = ahead.span()},
      guidance(options_in.push_every),
      evaluation(plan_in.elements),
      batches(
          options_in.threads * (options_in.prefetch + 1), options_in.batch_size, example_bytes_),
      dead_units(WatchedLayersOf(graph_in, plan_in), options_in.threads),
      fetch_at(options_in.fetch_every * options_in.threads) {
  for (std::size_t i = 0; i < options.threads; ++i) {
    ports.push_back(std::make_unique<ThreadPort>());
  }
}

std::uint64_t Replica::PushEvery() const {
  return options.choose_push ? std::min(guidance.Get().exchange_every, options.push_every)
                             : options.push_every;
}

std::uint64_t Replica::FetchEvery() const {
  return options.choose_fetch ? std::min(guidance.Get().exchange_every, options.fetch_every)
                              : options.fetch_every;
}

absl::Status Replica::SetNormalisation(const Normalisation& normalisation) {
  const auto channels = static_cast<std::size_t>(graph.input[0]);
  if (normalisation.mean.size() != channels || normalisation.deviation.size() != channels) {
    return absl::InvalidArgumentError("the data has " + std::to_string(normalisation.mean.size()) +
                                      " channels, the model's input " + std::to_string(channels));
  }
  MutexLock lock(mutex_);
  if (!normalisation_.mean.empty() && normalisation != normalisation_) {
    return absl::InvalidArgumentError("data servers disagree on how inputs are normalised");
  }
  if (normalisation_.mean.empty()) {
    normalisation_ = normalisation;
  }
  return absl::OkStatus();
}

}  // namespace adamant::worker
