#include "services/worker/rpc/job/worker_job.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/job/job.h"
#include "services/common/job/optimiser_of.h"
#include "services/common/job/short_job.h"
#include "services/worker/core/sync/asynchrony/asynchrony.h"

namespace adamant::worker {
namespace {

UpdateProtocol ProtocolOf(v1::UpdateProtocols::Protocol protocol) {
  switch (protocol) {
    case v1::UpdateProtocols::PROTOCOL_GRADIENTS:
      return UpdateProtocol::kGradients;
    case v1::UpdateProtocols::PROTOCOL_ACTIVATIONS:
      return UpdateProtocol::kActivations;
    default:
      return UpdateProtocol::kAuto;
  }
}

// A default of Activations means: wherever it can be. So it is Auto without the comparison of bytes
// only where the optimiser runs on the server.
std::vector<UpdateProtocol> ProtocolsOf(const v1::JobSpec& spec,
                                        const std::vector<Parameter>& parameters) {
  const v1::UpdateProtocols& protocols = spec.distribution().update_protocol();
  UpdateProtocol fallback = ProtocolOf(protocols.default_());
  if (fallback == UpdateProtocol::kActivations &&
      spec.optimiser().location() != v1::Optimiser::LOCATION_SERVER) {
    fallback = UpdateProtocol::kGradients;
  }
  std::map<std::string, UpdateProtocol> by_layer;
  for (const v1::LayerProtocol& layer : protocols.layers()) {
    by_layer[layer.layer()] = ProtocolOf(layer.protocol());
  }
  std::vector<UpdateProtocol> result;
  for (const Parameter& parameter : parameters) {
    const auto found = by_layer.find(parameter.layer);
    result.push_back(found == by_layer.end() ? fallback : found->second);
  }
  return result;
}

// Servers that write only checkpoints never say that a push is on disk.
std::uint64_t RetainBytesOf(const v1::Persistence& persistence) {
  return persistence.mode() == v1::Persistence::MODE_NONE
             ? 0
             : static_cast<std::uint64_t>(persistence.retain());
}

std::uint64_t IntervalAlone(const v1::Optimiser& optimiser) {
  return worker::IntervalAlone(optimiser.kind() == v1::Optimiser::KIND_MOMENTUM &&
                               optimiser.location() == v1::Optimiser::LOCATION_SERVER);
}

std::uint64_t PushEvery(const v1::JobSpec& spec) {
  const v1::Distribution& distribution = spec.distribution();
  return distribution.has_push_every() ? static_cast<std::uint64_t>(distribution.push_every())
                                       : IntervalAlone(spec.optimiser());
}

std::uint64_t FetchEvery(const v1::JobSpec& spec) {
  const v1::Distribution& distribution = spec.distribution();
  return distribution.has_fetch_every() ? static_cast<std::uint64_t>(distribution.fetch_every())
                                        : IntervalAlone(spec.optimiser());
}

ParallelMode ModeOf(const v1::JobSpec& spec,
                    const model::Graph& graph,
                    std::uint64_t parameters,
                    std::optional<double> ping) {
  const v1::Distribution& distribution = spec.distribution();
  const auto threads = static_cast<std::size_t>(distribution.threads_per_worker());
  const auto push_every = PushEvery(spec);
  if (distribution.has_share_every() && threads > 1) {
    const auto asked = static_cast<std::uint64_t>(distribution.share_every());
    return {.threads = threads, .share_every = std::min(asked, push_every)};
  }
  return ChooseParallelMode({.threads = threads,
                             .batch_size = static_cast<std::uint64_t>(spec.data().batch_size()),
                             .push_every = push_every,
                             .parameters = parameters,
                             .flop_per_example = graph.flop_per_example},
                            ping);
}

}  // namespace

absl::StatusOr<WorkerJob> ReadJob(const v1::TrainingJob& job,
                                  std::uint64_t training_examples,
                                  std::optional<double> ping) {
  const v1::JobSpec& spec = job.spec();
  const v1::Distribution& distribution = spec.distribution();
  ADAMANT_ASSIGN_OR_RETURN(model::Graph graph, model::BuildGraph(job::NetOf(job)));
  ShardLayout layout(graph.parameters,
                     static_cast<std::uint32_t>(distribution.parameter_servers().buckets()));
  const ParallelMode mode = ModeOf(spec, graph, layout.elements(), ping);
  WorkerOptions options;
  options.threads = mode.threads;
  options.share_every = mode.share_every;
  options.pin_threads = distribution.pin_threads();
  options.fetch_every = FetchEvery(spec);
  options.push_every = PushEvery(spec);
  options.correct = spec.optimiser().asynchrony() != v1::Optimiser::ASYNCHRONY_OFF;
  options.choose_fetch = !distribution.has_fetch_every();
  options.choose_push = !distribution.has_push_every();
  options.exchange_beside_one =
      job::IsShort(job, training_examples) ? 1 : IntervalAlone(spec.optimiser());
  options.batch_size = static_cast<std::size_t>(spec.data().batch_size());
  options.prefetch = static_cast<std::size_t>(spec.data().prefetch());
  options.seed = static_cast<std::uint64_t>(spec.run_policy().seed());

  UpdatePlanOptions plan_options;
  ADAMANT_ASSIGN_OR_RETURN(plan_options.optimisers, job::OptimisersOf(job, graph.parameters));
  plan_options.protocols = ProtocolsOf(spec, graph.parameters);
  plan_options.push_every = options.push_every;
  plan_options.batch_size = options.batch_size;
  plan_options.threads = options.threads;
  plan_options.servers = static_cast<std::uint64_t>(distribution.parameter_servers().count());
  plan_options.max_operand_bytes = kMaxOperandBytes;
  ADAMANT_ASSIGN_OR_RETURN(UpdatePlan plan, UpdatePlan::Make(graph, layout, plan_options));
  return WorkerJob{.graph = std::move(graph),
                   .layout = std::move(layout),
                   .plan = std::move(plan),
                   .options = options,
                   .mode = mode,
                   .retain_bytes = RetainBytesOf(distribution.parameter_servers().persistence())};
}

}  // namespace adamant::worker
