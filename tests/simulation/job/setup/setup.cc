#include "tests/simulation/job/setup/setup.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "services/common/base/check.h"

namespace adamant::simulation {
namespace {

// Of the random numbers of a seed.
constexpr std::uint64_t kDivergences = 1;
constexpr std::uint64_t kClocks = 3;
constexpr std::uint64_t kPersistence = 4;
constexpr std::uint64_t kInSync = 5;

constexpr std::int64_t kMostDrift = 100'000'000;  // ns a second: 10 %

std::uint32_t Draw(Rng& rng, std::uint32_t low, std::uint32_t high) {
  return low + static_cast<std::uint32_t>(rng.Below(high - low + 1));
}

// The first tensor is the weight of a fully connected layer, so that it can take Activations.
model::Graph MakeGraph(Rng& rng) {
  constexpr std::int64_t kOutputs = 16;
  model::Graph graph;
  graph.input = {1, 1, 1};
  graph.classes = 2;
  const std::uint32_t tensors = Draw(rng, 2, 5);
  for (std::uint32_t i = 0; i < tensors; ++i) {
    Shape shape = {Setup::kElements};
    if (i == 0) {
      shape = {kOutputs, Setup::kElements / kOutputs};
    }
    graph.parameters.push_back({.name = "tensor" + std::to_string(i),
                                .layer = "layer" + std::to_string(i),
                                .shape = std::move(shape),
                                .initialisation = Initialisation::kHe,
                                .fan_in = 1000});
  }
  model::Graph::Node node;
  node.layer.kind = model::LayerKind::kFullyConnected;
  node.weight = 0;
  graph.nodes.push_back(node);
  return graph;
}

std::vector<ParameterOptimiser> MakeOptimisers(Rng& rng, std::size_t tensors) {
  const bool on_server = rng.Below(2) == 0;
  std::vector<ParameterOptimiser> optimisers(
      tensors,
      {.kind = OptimiserKind::kSgd,
       .location = on_server ? OptimiserLocation::kServer : OptimiserLocation::kWorker,
       .rate = 1});
  if (tensors > 2 && rng.Below(4) == 0) {
    optimisers.back().rate = 0;  // never trained, so never pushed
  }
  return optimisers;
}

worker::WorkerOptions MakeTraining(Rng& rng, std::uint32_t batch_size) {
  return {.threads = Draw(rng, 1, 2),
          .fetch_every = Draw(rng, 1, 4),
          .push_every = Draw(rng, 1, 3),
          .batch_size = batch_size,
          .prefetch = Draw(rng, 1, 2)};
}

worker::UpdatePlan MakePlan(Rng& rng, const Setup& setup) {
  std::vector<worker::UpdateProtocol> protocols(setup.optimisers.size(),
                                                worker::UpdateProtocol::kGradients);
  if (setup.sign() < 0 && rng.Below(2) == 0) {
    protocols.front() = worker::UpdateProtocol::kActivations;
  }
  auto plan = worker::UpdatePlan::Make(setup.graph,
                                       setup.layout,
                                       {.optimisers = setup.optimisers,
                                        .protocols = protocols,
                                        .push_every = setup.training.push_every,
                                        .batch_size = setup.batch_size,
                                        .threads = setup.training.threads,
                                        .servers = setup.job.parameter_servers,
                                        .max_operand_bytes = 1 << 20});
  ADAMANT_CHECK(plan.ok(), "the job is a valid one");
  return *std::move(plan);
}

controller::JobSettings MakeJob(Rng& rng) {
  controller::JobSettings job;
  job.name = "simulated";
  job.workers = Draw(rng, 1, 3);
  job.data_servers = Draw(rng, 1, 3);
  job.parameter_servers = Draw(rng, 1, 4);
  job.copies = Draw(rng, 1, std::min(job.parameter_servers, 3U));
  job.min_in_sync = job.copies == 3 ? 2 : 1;
  job.logged = rng.Below(3) == 0;
  job.buckets = Draw(rng, job.parameter_servers, 6);
  job.epochs = Draw(rng, 2, 5);
  job.checkpoint_interval = std::chrono::milliseconds(Draw(rng, 2000, 20000));
  job.restart_limit = 1000;
  job.training_examples = 1;  // known
  job.restart_backoff = std::chrono::milliseconds(50);
  return job;
}

// Most trouble is at the ends.
std::int64_t DrawDrift(Rng& rng) {
  switch (rng.Below(3)) {
    case 0:
      return kMostDrift;
    case 1:
      return -kMostDrift;
    default:
      return static_cast<std::int64_t>(rng.Below(2 * kMostDrift)) - kMostDrift;
  }
}

}  // namespace

Setup::Setup(std::uint64_t seed) : Setup(Rng(seed)) {
  Rng aside(MixSeed(seed, kDivergences));  // leaves the other jobs as they are
  if (aside.Below(3) == 0) {
    divergences = Draw(aside, 1, 3);
    loses_snapshots = aside.Below(3) == 0;
    job.chance_loss = 10;  // that of training is 1
    if (aside.Below(2) == 0) {
      job.checkpoint_interval = std::chrono::milliseconds(Draw(aside, 500, 2000));
    }
    job.on_divergence = {.action = controller::OnDivergence::Action::kRecover, .times = 100};
  }
  Rng modes(MixSeed(seed, kPersistence));
  if (!job.logged && modes.Below(5) == 0) {
    mode = parameter_server::PersistenceMode::kNone;
    job.only_checkpoints = true;
    if (modes.Below(2) == 0) {
      job.checkpoint_interval = std::chrono::milliseconds(Draw(modes, 500, 3000));
    }
  }
  Rng in_sync(MixSeed(seed, kInSync));
  if (job.copies == 2 && in_sync.Below(2) == 0) {
    job.min_in_sync = 2;
  }
  DrawClocks(Rng(MixSeed(seed, kClocks)));
}

void Setup::DrawClocks(Rng rng) {
  using controller::Role;
  const bool right = rng.Below(2) == 0;
  for (const auto& [role, slots] : {std::pair(Role::kParameterServer, job.parameter_servers),
                                    std::pair(Role::kDataServer, job.data_servers),
                                    std::pair(Role::kWorker, job.workers)}) {
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      drift[{role, slot}] = right ? 0 : DrawDrift(rng);
    }
  }
  controller_drift = right ? 0 : DrawDrift(rng);
}

Setup::Setup(Rng rng)
    : job(MakeJob(rng)),
      batch_size(Draw(rng, 1, 3)),
      initial_seed(rng()),
      graph(MakeGraph(rng)),
      optimisers(MakeOptimisers(rng, graph.parameters.size())),
      layout(graph.parameters, job.buckets),
      training(MakeTraining(rng, batch_size)),
      plan(MakePlan(rng, *this)) {
  train_examples = Draw(rng, 30, 60) * batch_size - Draw(rng, 0, batch_size - 1);
  validation_examples = Draw(rng, 4, 10) * batch_size - Draw(rng, 0, batch_size - 1);
  epoch_completion = rng.Below(3) == 0 ? 0.75 : 1;
  warm_start_examples = rng.Below(4) == 0 ? train_examples / 4 : 0;
  step_time = std::chrono::milliseconds(Draw(rng, 100, 1000));
  poison = rng.Below(4) == 0 ? 0.02 : 0;
  flush.interval = std::chrono::milliseconds(Draw(rng, 200, 3000));
  constexpr std::uint64_t kRetain[] = {0, 100'000, 1'000'000};
  retain_bytes = kRetain[rng.Below(3)];
  job.workers_retain = retain_bytes > 0;
  times = {.beacon = std::chrono::milliseconds(200),
           .lease = std::chrono::milliseconds(1200),
           .grace = std::chrono::milliseconds(1600)};
  if (job.logged) {
    mode = rng.Below(2) == 0 ? parameter_server::PersistenceMode::kWal
                             : parameter_server::PersistenceMode::kWalSync;
  }
}

std::vector<float> Setup::InitialValues(ShardId shard) const {
  const Shard& which = layout.shards()[shard];
  std::vector<float> values(which.size());
  InitialiseShard(initial_seed, layout.parameters()[which.tensor], which, values);
  return values;
}

data_server::BatchSchedulerOptions Setup::SchedulerOptions(std::uint32_t slot,
                                                           Incarnation incarnation) const {
  return {.slot = slot,
          .incarnation = incarnation,
          .parts = job.data_servers,
          .batch_size = batch_size,
          .train_examples = train_examples,
          .validation_examples = validation_examples,
          .epochs = job.epochs,
          .epoch_completion = epoch_completion,
          .warm_start_examples = warm_start_examples};
}

parameter_server::ParameterServerOptions Setup::ParameterServerOptions(
    const parameter_server::ServerId& self, std::uint64_t job_uid) const {
  return {.job_uid = job_uid,
          .self = self,
          .writers = job.workers,
          .seed = initial_seed,
          .parameters = graph.parameters,
          .buckets = job.buckets,
          .optimisers = optimisers,
          .times = times,
          .min_in_sync = job.min_in_sync,
          .mode = mode,
          .flush = flush};
}

std::string Setup::Describe() const {
  constexpr const char* kModes[] = {"delayed", "wal", "wal-sync", "none"};
  char text[400];
  std::snprintf(
      text,
      sizeof(text),
      "%u workers x %zu threads, %u data servers, %u parameter servers (%s), %u copies of %u "
      "buckets, "
      "%zu shards, %llu epochs of %u examples in batches of %u to %.2f, "
      "push %llu, fetch %llu, warm start %llu, optimiser on the %s%s, diverges %u times",
      job.workers,
      training.threads,
      job.data_servers,
      job.parameter_servers,
      kModes[static_cast<std::size_t>(mode)],
      job.copies,
      job.buckets,
      layout.shards().size(),
      static_cast<unsigned long long>(job.epochs),
      train_examples,
      batch_size,
      epoch_completion,
      static_cast<unsigned long long>(training.push_every),
      static_cast<unsigned long long>(training.fetch_every),
      static_cast<unsigned long long>(warm_start_examples),
      sign() < 0 ? "server" : "worker",
      plan.tensors.front().activations ? " with activations" : "",
      divergences);
  return text;
}

}  // namespace adamant::simulation
