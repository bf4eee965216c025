#include "tests/bench/stale_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "services/common/base/status_macros.h"
#include "services/common/dataset/idx.h"
#include "services/common/graph/context.h"
#include "tests/bench/nets.h"
#include "tests/bench/virtual_worker.h"

namespace adamant::bench {
namespace {

// What a job has where its manifest says nothing.
constexpr std::uint64_t kExchangeEvery = 8;
constexpr std::size_t kPrefetch = 4;
constexpr double kEpsilon = 1e-8;
constexpr std::uint32_t kBuckets = 64;
constexpr std::uint64_t kWarmStartBatches = 200;
constexpr std::uint64_t kMostWarmStart = 10;  // of an epoch: one tenth

constexpr std::uint64_t kMaxOperandBytes = std::uint64_t{128} << 20;
constexpr std::size_t kEvaluationBatch = 200;
constexpr float kDeviation = 255;

worker::ReplicaOptions ReplicaOptionsOf(const StaleOptions& options) {
  return {.threads = options.threads,
          .fetch_every = options.fetch_every.value_or(kExchangeEvery),
          .push_every = options.push_every.value_or(kExchangeEvery),
          .choose_fetch = !options.fetch_every.has_value(),
          .choose_push = !options.push_every.has_value(),
          .correct = options.asynchrony,
          .batch_size = options.batch,
          .prefetch = kPrefetch,
          .seed = options.seed};
}

std::uint64_t WarmStartExamples(const StaleOptions& options, std::uint64_t examples) {
  if (options.warm_start.has_value()) {
    return *options.warm_start * options.batch;
  }
  if (options.workers * options.threads <= 2 || options.workers == 1 || !options.asynchrony) {
    return 0;
  }
  return std::min(kWarmStartBatches * options.batch, examples / kMostWarmStart);
}

absl::StatusOr<dataset::Dataset> Read(const StaleOptions& options,
                                      const std::string& prefix,
                                      const model::Graph& graph) {
  ADAMANT_ASSIGN_OR_RETURN(
      dataset::Dataset data,
      dataset::ReadIdx(dataset::MnistPaths(options.data, prefix),
                       {.classes = static_cast<std::uint32_t>(graph.classes)}));
  if (Shape{data.channels, data.height, data.width} != graph.input) {
    return absl::InvalidArgumentError("the images of " + prefix + " do not fit the net's input");
  }
  return data;
}

absl::StatusOr<double> Top1(const model::Graph& graph,
                            const dataset::Dataset& data,
                            std::span<const float> weights) {
  ADAMANT_ASSIGN_OR_RETURN(const std::unique_ptr<graph::Context> context,
                           graph::Context::Create(graph,
                                                  kEvaluationBatch,
                                                  graph::Backend::kOneDnn,
                                                  /*training=*/false));
  std::int64_t correct = 0;
  for (std::size_t first = 0; first < data.size(); first += kEvaluationBatch) {
    const std::size_t count = std::min<std::size_t>(kEvaluationBatch, data.size() - first);
    const std::size_t bytes = data.example_bytes();
    std::ranges::transform(
        std::span(data.images).subspan(first * bytes, count * bytes),
        context->input().begin(),
        [](std::uint8_t pixel) { return static_cast<float>(pixel) / kDeviation; });
    std::ranges::copy(std::span(data.labels).subspan(first, count), context->labels().begin());
    correct += context->Evaluate(static_cast<std::int64_t>(count), weights).correct;
  }
  return static_cast<double>(correct) / static_cast<double>(data.size());
}

/// A job of virtual workers.
class StaleJob {
 public:
  StaleJob(const StaleOptions& options,
           model::Graph graph,
           dataset::Dataset train,
           dataset::Dataset test)
      : options_(options),
        graph_(std::move(graph)),
        train_(std::move(train)),
        test_(std::move(test)),
        layout_(graph_.parameters, kBuckets),
        dealer_(train_,
                {.batch_size = static_cast<std::uint32_t>(options.batch),
                 .epochs = options.epochs,
                 .warm_start_examples = WarmStartExamples(options, train_.size()),
                 .seed = options.seed}) {}

  ~StaleJob() { clock_.Clear(); }  // events hold memory of workers
  StaleJob(const StaleJob&) = delete;
  StaleJob& operator=(const StaleJob&) = delete;

  absl::Status Prepare();

  /// Until all examples are acknowledged.
  absl::Status Run();

 private:
  absl::Status MakeWorkers();
  void WakeAll();
  absl::Status Evaluate();

  const StaleOptions options_;
  const model::Graph graph_;
  const dataset::Dataset train_;
  const dataset::Dataset test_;
  const ShardLayout layout_;
  VirtualClock clock_;
  BatchDealer dealer_;
  worker::UpdatePlan plan_;
  std::unique_ptr<VirtualServers> servers_;
  std::vector<std::unique_ptr<VirtualWorker>> workers_;  // last: they use the others
};

absl::Status StaleJob::Prepare() {
  const std::size_t tensors = graph_.parameters.size();
  const ParameterOptimiser optimiser = {
      .kind = options_.kind,
      .location = options_.location,
      .rate = options_.rate,
      .schedule = {.kind = options_.schedule,
                   .over = static_cast<double>(dealer_.total_examples())},
      .momentum = options_.kind == OptimiserKind::kMomentum ? options_.momentum : 0,
      .epsilon = kEpsilon};
  const worker::ReplicaOptions replica = ReplicaOptionsOf(options_);
  const std::vector optimisers(tensors, optimiser);
  ADAMANT_ASSIGN_OR_RETURN(
      plan_,
      worker::UpdatePlan::Make(graph_,
                               layout_,
                               {.optimisers = optimisers,
                                .protocols = std::vector(tensors, worker::UpdateProtocol::kAuto),
                                .push_every = replica.push_every,
                                .batch_size = replica.batch_size,
                                .threads = replica.threads,
                                .max_operand_bytes = kMaxOperandBytes}));
  ADAMANT_ASSIGN_OR_RETURN(
      servers_,
      VirtualServers::Start(
          layout_,
          {.workers = options_.workers, .seed = options_.seed, .optimisers = optimisers},
          clock_));
  return MakeWorkers();
}

absl::Status StaleJob::MakeWorkers() {
  const VirtualJob job = {.graph = graph_,
                          .layout = layout_,
                          .plan = plan_,
                          .clock = clock_,
                          .servers = *servers_,
                          .dealer = dealer_};
  for (std::uint32_t slot = 0; slot < options_.workers; ++slot) {
    const VirtualWorkerOptions options = {
        .slot = slot,
        .replica = ReplicaOptionsOf(options_),
        .step = slot == options_.straggler.first ? options_.straggler.second : 1,
        .jitter = options_.jitter,
        .latency = options_.latency};
    ADAMANT_ASSIGN_OR_RETURN(workers_.emplace_back(), VirtualWorker::Create(options, job));
  }
  return absl::OkStatus();
}

void StaleJob::WakeAll() {
  for (const auto& worker : workers_) {
    worker->Wake();
  }
}

absl::Status StaleJob::Run() {
  const std::uint64_t evaluations = options_.epochs * options_.evaluations;
  std::uint64_t evaluation = 1;
  std::uint64_t news = dealer_.news();
  WakeAll();
  while (dealer_.acknowledged() < dealer_.total_examples()) {
    if (!clock_.Next()) {
      return absl::InternalError("nothing more happens, but batches are not acknowledged");
    }
    while (news != dealer_.news()) {
      news = dealer_.news();
      WakeAll();
    }
    for (const auto& worker : workers_) {
      ADAMANT_RETURN_IF_ERROR(worker->status());
    }
    if (dealer_.acknowledged() >= dealer_.total_examples() * evaluation / evaluations) {
      ADAMANT_RETURN_IF_ERROR(Evaluate());
      ++evaluation;
    }
  }
  return absl::OkStatus();
}

absl::Status StaleJob::Evaluate() {
  ADAMANT_ASSIGN_OR_RETURN(const std::vector<float> weights, servers_->Weights());
  ADAMANT_ASSIGN_OR_RETURN(const double top1, Top1(graph_, test_, weights));
  const worker::ExchangeStatistics statistics = workers_.front()->statistics();
  const double epochs =
      static_cast<double>(dealer_.acknowledged()) / static_cast<double>(train_.size());
  const nlohmann::json line = {{"epochs", epochs},
                               {"steps", clock_.Steps()},
                               {"top1", top1},
                               {"staleness_batches", statistics.gap_batches},
                               {"rate_factor", statistics.correction.rate},
                               {"exchange_every", statistics.exchange_every}};
  std::cout << line << std::endl;
  return absl::OkStatus();
}

template <class T>
CLI::CheckedTransformer OneOf(const std::map<std::string, T>& values) {
  return CLI::CheckedTransformer(values);
}

void AddAsynchrony(CLI::App& command, StaleOptions& options) {
  command.add_option("--fetch-every", options.fetch_every, "Batches; chosen where absent")
      ->check(CLI::Range(1, 1024));
  command.add_option("--push-every", options.push_every, "Batches; chosen where absent")
      ->check(CLI::Range(1, 1024));
  command.add_option("--asynchrony", options.asynchrony, "auto or off")
      ->transform(OneOf<bool>({{"auto", true}, {"off", false}}));
  command.add_option(
      "--warm-start", options.warm_start, "Batches of worker 0 alone; absent: as in a job");
  command.add_option("--jitter", options.jitter, "Of a step's time, as a share of it")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str();
  command.add_option("--latency", options.latency, "Steps that a message takes each way")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command.add_option("--straggler", options.straggler, "SLOT:FACTOR, how much longer it takes")
      ->delimiter(':');
}

}  // namespace

void AddStale(CLI::App& command, StaleOptions& options) {
  command.add_option("net", options.net, "A reference net's name, or a job's file")->required();
  command.add_option("--data", options.data, "Folder with MNIST's files")->required();
  command.add_option("--workers", options.workers)
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--threads", options.threads, "Of each worker")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command.add_option("--batch", options.batch, "Examples in a batch")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  command.add_option("--kind", options.kind, "Momentum, Sgd or Adagrad")
      ->transform(OneOf<OptimiserKind>({{"Momentum", OptimiserKind::kMomentum},
                                        {"Sgd", OptimiserKind::kSgd},
                                        {"Adagrad", OptimiserKind::kAdagrad}}));
  command.add_option("--location", options.location, "Worker or Server")
      ->transform(OneOf<OptimiserLocation>(
          {{"Worker", OptimiserLocation::kWorker}, {"Server", OptimiserLocation::kServer}}));
  command.add_option("--rate", options.rate)->capture_default_str();
  command.add_option("--schedule", options.schedule, "Linear (the default), to 0, or Constant")
      ->transform(OneOf<Schedule::Kind>(
          {{"Linear", Schedule::Kind::kLinear}, {"Constant", Schedule::Kind::kConstant}}));
  command.add_option("--momentum", options.momentum)
      ->check(CLI::Range(0.0, 0.9999))
      ->capture_default_str();
  AddAsynchrony(command, options);
  command.add_option("--epochs", options.epochs)
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command.add_option("--evaluations", options.evaluations, "Per epoch")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Of weights, order and times")->capture_default_str();
}

absl::Status Stale(const StaleOptions& options) {
  ADAMANT_ASSIGN_OR_RETURN(const model::Net net, LoadNet(options.net));
  ADAMANT_ASSIGN_OR_RETURN(model::Graph graph, model::BuildGraph(net));
  ADAMANT_ASSIGN_OR_RETURN(dataset::Dataset train, Read(options, "train", graph));
  ADAMANT_ASSIGN_OR_RETURN(dataset::Dataset test, Read(options, "t10k", graph));
  const auto examples = static_cast<double>(options.epochs * train.size());
  StaleJob job(options, std::move(graph), std::move(train), std::move(test));
  ADAMANT_RETURN_IF_ERROR(job.Prepare());
  const auto start = std::chrono::steady_clock::now();
  ADAMANT_RETURN_IF_ERROR(job.Run());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::cerr << "train_bench: " << examples / took.count() << " examples per second\n";
  return absl::OkStatus();
}

}  // namespace adamant::bench
