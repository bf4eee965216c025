#include "services/worker/core/worker.h"

#include <utility>

namespace adamant::worker {

Worker::Worker(const Options& options,
               const model::Graph& graph,
               const ShardLayout& layout,
               const UpdatePlan& plan,
               std::function<void()> wake_loop)
    : learner_(options.training, graph, layout, plan, std::move(wake_loop)),
      intake_(options.training, graph, learner_.notifier()),
      synchroniser_(learner_, intake_, options.synchroniser) {}

void Worker::OnPlacement(const PlacementView& placement) {
  synchroniser_.OnPlacement(placement);
  intake_.OnPlacement(placement);
  learner_.weight_age().SetWorkers(placement.workers);
}

void Worker::Flush(DataEpoch epoch) {
  intake_.OnEpochClosed(epoch);
  synchroniser_.Flush(epoch);
}

}  // namespace adamant::worker
