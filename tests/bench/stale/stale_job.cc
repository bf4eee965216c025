#include "tests/bench/stale/stale_job.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/job/short_job.h"
#include "services/worker/core/base/accumulator.h"
#include "services/worker/core/learner/thread_channel.h"

namespace adamant::bench {
namespace {

// What a job has where its manifest says nothing.
constexpr std::size_t kPrefetch = 4;
constexpr double kEpsilon = 1e-8;
constexpr std::uint32_t kBuckets = 64;
constexpr std::uint64_t kWarmStartBatches = 200;

constexpr std::uint64_t kMaxOperandBytes = std::uint64_t{128} << 20;
constexpr std::int64_t kEvaluationBatch = 200;
constexpr float kDeviation = 255;

bool IsShort(const StaleOptions& options, std::uint64_t examples) {
  return job::IsShort(options.epochs, examples, options.batch);
}

worker::WorkerOptions TrainingOptionsOf(const StaleOptions& options, std::uint64_t examples) {
  const std::uint64_t alone = worker::IntervalAlone(options.kind == OptimiserKind::kMomentum &&
                                                    options.location == OptimiserLocation::kServer);
  return {.threads = options.threads,
          .fetch_every = options.fetch_every.value_or(alone),
          .push_every = options.push_every.value_or(alone),
          .choose_fetch = !options.fetch_every.has_value(),
          .choose_push = !options.push_every.has_value(),
          .exchange_beside_one = IsShort(options, examples) ? 1 : alone,
          .correct = options.asynchrony,
          .batch_size = options.batch,
          .prefetch = kPrefetch,
          .seed = options.seed};
}

std::uint64_t WarmStartExamples(const StaleOptions& options, std::uint64_t examples) {
  if (options.warm_start.has_value()) {
    return *options.warm_start * options.batch;
  }
  const bool few = options.workers * options.threads == 2 && !IsShort(options, examples);
  if (few || options.workers == 1 || !options.asynchrony) {
    return 0;
  }
  return kWarmStartBatches * options.batch;
}

// As a job's manifest would say it; `examples`: of an epoch.
std::vector<ParameterOptimiser> OptimisersOf(const StaleOptions& options,
                                             std::span<const Parameter> parameters,
                                             std::uint64_t examples) {
  const ParameterOptimiser optimiser = {
      .kind = options.kind,
      .location = options.location,
      .rate = options.rate,
      .schedule = {.kind = options.schedule,
                   .over = static_cast<double>(examples * options.epochs),
                   .warm_up = std::ceil(options.warm_up * static_cast<double>(examples))},
      .momentum = options.kind == OptimiserKind::kMomentum ? options.momentum : 0,
      .epsilon = kEpsilon};
  std::vector<ParameterOptimiser> all(parameters.size(), optimiser);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    all[i].weight_decay = parameters[i].decays ? options.weight_decay : 0;
  }
  return all;
}

Chance ChanceOf(const model::Graph& graph, const dataset::Dataset& test) {
  return {.classes = graph.classes, .examples = test.size(), .most_frequent = test.most_frequent()};
}

double Top1(graph::Context& context, const dataset::Dataset& data, std::span<const float> weights) {
  std::int64_t correct = 0;
  for (std::size_t first = 0; first < data.size(); first += kEvaluationBatch) {
    const std::size_t count = std::min<std::size_t>(kEvaluationBatch, data.size() - first);
    const std::size_t bytes = data.example_bytes();
    std::ranges::transform(
        std::span(data.images).subspan(first * bytes, count * bytes),
        context.input().begin(),
        [](std::uint8_t pixel) { return static_cast<float>(pixel) / kDeviation; });
    std::ranges::copy(std::span(data.labels).subspan(first, count), context.labels().begin());
    correct += context.Evaluate(static_cast<std::int64_t>(count), weights).correct;
  }
  return static_cast<double>(correct) / static_cast<double>(data.size());
}

}  // namespace

StaleJob::StaleJob(const StaleOptions& options,
                   model::Graph graph,
                   dataset::Dataset train,
                   dataset::Dataset test)
    : options_(options),
      graph_(std::move(graph)),
      train_(std::move(train)),
      test_(std::move(test)),
      layout_(graph_.parameters, kBuckets),
      network_(
          {.latency = options.latency, .bandwidth = options.bandwidth, .apply = options.apply}),
      scheduler_(train_,
                 {.batch_size = static_cast<std::uint32_t>(options.batch),
                  .epochs = options.epochs,
                  .warm_start_examples = WarmStartExamples(options, train_.size()),
                  .seed = options.seed}),
      report_(ChanceOf(graph_, test_), options.target) {}

StaleJob::~StaleJob() { clock_.Clear(); }  // events hold memory of workers

absl::Status StaleJob::Run(std::ostream& lines) {
  ADAMANT_RETURN_IF_ERROR(Check(options_, train_.size()));
  ADAMANT_RETURN_IF_ERROR(Prepare());
  const absl::Status status = Train(lines);
  if (status.ok()) {
    lines << report_.Summary(Now()) << std::endl;
    return report_.JudgeEnd();
  }
  if (absl::IsInvalidArgument(status)) {
    lines << StaleReport::Diverged(Now(), status) << std::endl;
  }
  return status;
}

absl::Status StaleJob::Prepare() {
  const std::size_t tensors = graph_.parameters.size();
  const worker::WorkerOptions training = TrainingOptionsOf(options_, train_.size());
  const auto optimisers = OptimisersOf(options_, graph_.parameters, train_.size());
  ADAMANT_ASSIGN_OR_RETURN(
      plan_,
      worker::UpdatePlan::Make(graph_,
                               layout_,
                               {.optimisers = optimisers,
                                .protocols = std::vector(tensors, worker::UpdateProtocol::kAuto),
                                .push_every = training.push_every,
                                .batch_size = training.batch_size,
                                .threads = training.threads,
                                .servers = options_.servers,
                                .max_operand_bytes = kMaxOperandBytes}));
  ADAMANT_RETURN_IF_ERROR(CheckMemory());
  ADAMANT_ASSIGN_OR_RETURN(evaluator_,
                           graph::Context::Create(graph_,
                                                  kEvaluationBatch,
                                                  graph::BackendKind::kOneDnn,
                                                  /*training=*/false));
  ADAMANT_ASSIGN_OR_RETURN(servers_,
                           VirtualServers::Start(layout_,
                                                 {.servers = options_.servers,
                                                  .workers = MostWorkers(options_),
                                                  .seed = options_.seed,
                                                  .optimisers = optimisers},
                                                 clock_));
  fleet_ =
      std::make_unique<VirtualFleet>(VirtualJob{.graph = graph_,
                                                .layout = layout_,
                                                .plan = plan_,
                                                .clock = clock_,
                                                .network = network_,
                                                .servers = *servers_,
                                                .scheduler = scheduler_},
                                     [this](std::uint32_t slot) { return WorkerOptionsOf(slot); });
  return fleet_->Scale(options_.workers);
}

// Of all workers: what grows with the parameters.
absl::Status StaleJob::CheckMemory() const {
  constexpr double kGigabyte = 1e9;
  const std::uint64_t copy = plan_.elements * sizeof(float);
  const std::uint64_t thread =
      copy + worker::ThreadChannel::kAccumulators * worker::Accumulator::BytesOf(plan_);
  const double needed =
      static_cast<double>(4 * copy + options_.threads * thread) * MostWorkers(options_);
  const double there =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return needed < there
             ? absl::OkStatus()
             : absl::InvalidArgumentError("--workers, --threads: they take " +
                                          std::to_string(std::llround(needed / kGigabyte)) +
                                          " GB of memory, and there are " +
                                          std::to_string(std::llround(there / kGigabyte)));
}

VirtualWorkerOptions StaleJob::WorkerOptionsOf(std::uint32_t slot) const {
  VirtualWorkerOptions worker = {
      .training = TrainingOptionsOf(options_, train_.size()),
      .pace = {.jitter = options_.jitter, .latency_jitter = options_.latency_jitter}};
  for (const Straggler& straggler : options_.stragglers) {
    worker.pace.step = straggler.slot == slot ? straggler.factor : worker.pace.step;
  }
  for (const SlotPause& each : options_.pauses) {
    worker.pace.pause = each.slot == slot ? each.pause : worker.pace.pause;
  }
  return worker;
}

absl::Status StaleJob::FollowScalings() {
  const auto done = static_cast<double>(scheduler_.acknowledged());
  const auto epoch = static_cast<double>(train_.size());
  for (; scaled_ < options_.scalings.size() && done >= options_.scalings[scaled_].epoch * epoch;
       ++scaled_) {
    ADAMANT_RETURN_IF_ERROR(fleet_->Scale(options_.scalings[scaled_].workers));
  }
  return absl::OkStatus();
}

absl::Status StaleJob::Train(std::ostream& lines) {
  const std::uint64_t total = scheduler_.total_examples();
  const std::uint64_t evaluations = options_.epochs * options_.evaluations;
  std::uint64_t evaluated = 0;
  std::uint64_t news = 0;
  while (scheduler_.acknowledged() < total) {
    if (!clock_.Next()) {
      return absl::InternalError("nothing more happens, but batches are not acknowledged");
    }
    while (news != scheduler_.news()) {
      news = scheduler_.news();
      fleet_->WakeAll();
    }
    ADAMANT_RETURN_IF_ERROR(fleet_->Advance());
    ADAMANT_RETURN_IF_ERROR(FollowScalings());
    const std::uint64_t due = scheduler_.acknowledged() * evaluations / total;
    if (due > evaluated) {
      evaluated = due;
      ADAMANT_RETURN_IF_ERROR(Evaluate(lines));
    }
  }
  return absl::OkStatus();
}

absl::Status StaleJob::Evaluate(std::ostream& lines) {
  ADAMANT_ASSIGN_OR_RETURN(const std::vector<float> weights, servers_->Weights());
  if (!std::ranges::all_of(weights, [](float weight) { return std::isfinite(weight); })) {
    return absl::InvalidArgumentError("training diverged: the weights are not finite");
  }
  lines << report_.Evaluated(Now(), Top1(*evaluator_, test_, weights)) << std::endl;
  return report_.Judge();
}

Moment StaleJob::Now() const {
  Moment now = {
      .epochs = static_cast<double>(scheduler_.acknowledged()) / static_cast<double>(train_.size()),
      .steps = clock_.Steps(),
      .examples = scheduler_.acknowledged(),
      .loss_sum = scheduler_.loss_sum()};
  fleet_->Tell(now);
  return now;
}

}  // namespace adamant::bench
