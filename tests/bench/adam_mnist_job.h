#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/model/model.h"
#include "services/common/tensor/shard_layout.h"
#include "services/worker/core/base/update_plan.h"

namespace adamant::bench {

/// The value; a benchmark has no use for the error but to tell it.
template <class T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::cerr << value.status() << '\n';
    std::exit(1);
  }
  return *std::move(value);
}

/// adam-mnist, and how a worker of some threads updates it: momentum, accumulators handed over
/// every `push_every` batches.
struct AdamMnistJob {
  AdamMnistJob(std::size_t batch, std::uint64_t push_every, std::size_t threads)
      : graph(Must(model::BuildGraph(*model::ReferenceNet("adam-mnist")))),
        layout(graph.parameters, 64) {
    worker::UpdatePlanOptions options;
    options.optimisers.assign(graph.parameters.size(),
                              {.kind = OptimiserKind::kMomentum,
                               .location = OptimiserLocation::kWorker,
                               .rate = 0.001,
                               .schedule = {},
                               .momentum = 0.9});
    options.protocols.assign(graph.parameters.size(), worker::UpdateProtocol::kGradients);
    options.push_every = push_every;
    options.batch_size = batch;
    options.threads = threads;
    plan = Must(worker::UpdatePlan::Make(graph, layout, options));
  }

  const model::Graph graph;
  const ShardLayout layout;
  worker::UpdatePlan plan;
};

}  // namespace adamant::bench
