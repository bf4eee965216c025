#include "tests/bench/trainer.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <utility>

#include "services/common/base/rng.h"
#include "services/common/base/status_macros.h"
#include "services/common/graph/context.h"
#include "services/worker/core/base/float_buffer.h"
#include "services/worker/core/learner/local_update.h"
#include "tests/bench/drop_gradient.h"
#include "tests/bench/machine.h"

namespace adamant::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kPushEvery = 8;  // a worker's default
constexpr double kMomentum = 0.9;
constexpr int kWarmUpBatches = 2;

std::vector<ParameterOptimiser> OptimisersOf(const model::Graph& graph,
                                             const TrainerOptions& options) {
  Schedule schedule = {.warm_up = options.warm_up};
  if (options.decay_over > 0) {
    schedule.kind = Schedule::Kind::kLinear;
    schedule.over = static_cast<double>(options.decay_over);
  }
  std::vector<ParameterOptimiser> optimisers;
  for (const Parameter& parameter : graph.parameters) {
    optimisers.push_back({.kind = OptimiserKind::kMomentum,
                          .location = OptimiserLocation::kWorker,
                          .rate = options.rate,
                          .schedule = schedule,
                          .momentum = kMomentum,
                          .weight_decay = parameter.decays ? options.weight_decay : 0});
  }
  return optimisers;
}

}  // namespace

/// A training thread, apart from the thread: made, used and freed on one processor.
struct Trainer::Member {
  Member(Trainer& trainer, std::size_t index)
      : state(trainer.plan_.StateSize()),
        pending(trainer.mode_.share_every > 1 ? trainer.plan_.elements : 0),
        scratch(worker::UpdatePlan::kBlock),
        update(trainer.plan_,
               {.weights = trainer.weights_.span(),
                .state = state.span(),
                .pending = pending.span(),
                .scratch = scratch.span()},
               {.share_every = trainer.mode_.share_every,
                .alone = trainer.mode_.threads == 1,
                .start = static_cast<double>(index) / static_cast<double>(trainer.mode_.threads)}),
        accumulator(trainer.plan_, trainer.layout_.shards().size(), kPushEvery) {}

  std::unique_ptr<graph::Context> context;
  worker::FloatBuffer state;
  worker::FloatBuffer pending;
  worker::FloatBuffer scratch;
  worker::LocalUpdate update;
  worker::Accumulator accumulator;
  Clock::time_point start;
  Clock::time_point end;
  double processor_seconds = 0;
};

Trainer::Trainer(model::Graph graph, const TrainerOptions& options)
    : graph_(std::move(graph)), layout_(graph_.parameters, 1), options_(options) {}

Trainer::~Trainer() = default;

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(model::Graph graph,
                                                         const TrainerOptions& options) {
  std::unique_ptr<Trainer> trainer(new Trainer(std::move(graph), options));
  ADAMANT_RETURN_IF_ERROR(trainer->Prepare());
  return trainer;
}

absl::Status Trainer::Prepare() {
  worker::UpdatePlanOptions plan;
  plan.optimisers = OptimisersOf(graph_, options_);
  plan.protocols.assign(graph_.parameters.size(), worker::UpdateProtocol::kGradients);
  plan.push_every = kPushEvery;
  plan.batch_size = options_.batch_size;
  mode_ = worker::ChooseParallelMode({.threads = options_.threads,
                                      .batch_size = options_.batch_size,
                                      .push_every = kPushEvery,
                                      .parameters = layout_.elements(),
                                      .flop_per_example = graph_.flop_per_example},
                                     options_.ping);
  plan.threads = mode_.threads;
  ADAMANT_ASSIGN_OR_RETURN(plan_, worker::UpdatePlan::Make(graph_, layout_, plan));
  weights_ = worker::FloatBuffer(plan_.elements);
  for (const Shard& shard : layout_.shards()) {
    const std::uint64_t begin = layout_.OffsetOf(shard.tensor) + shard.begin;
    InitialiseShard(options_.seed,
                    graph_.parameters[shard.tensor],
                    shard,
                    weights_.span().subspan(begin, shard.size()));
  }
  members_.resize(mode_.threads);
  std::vector<absl::Status> errors(mode_.threads);
  RunPinned(mode_.threads, [&](std::size_t index) {
    auto context = graph::Context::Create(graph_,
                                          static_cast<std::int64_t>(options_.batch_size),
                                          graph::BackendKind::kOneDnn,
                                          /*training=*/true);
    if (!context.ok()) {
      errors[index] = context.status();
      return;
    }
    members_[index] = std::make_unique<Member>(*this, index);
    members_[index]->context = *std::move(context);
  });
  for (absl::Status& error : errors) {
    ADAMANT_RETURN_IF_ERROR(std::move(error));
  }
  return absl::OkStatus();
}

void Trainer::TakeBatch(Member& member,
                        const Examples& examples,
                        std::span<const std::uint32_t> batch,
                        std::uint64_t job_examples) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    std::ranges::copy(examples.input(batch[i]),
                      member.context->input().subspan(i * examples.features).begin());
    member.context->labels()[i] = examples.labels[batch[i]];
  }
  member.update.Begin(job_examples, member.accumulator);
  member.context->Train(static_cast<std::int64_t>(batch.size()),
                        weights_.span(),
                        member.update,
                        MixSeed(options_.seed, job_examples));
  // What a worker pushes after as many steps is dropped.
  member.accumulator.steps = (member.accumulator.steps + 1) % kPushEvery;
}

Work Trainer::Train(const Examples& examples,
                    std::span<const std::uint32_t> order,
                    std::uint64_t most_batches,
                    double seconds) {
  const std::size_t batches_in_order = order.size() / options_.batch_size;
  std::atomic<std::uint64_t> next{0};
  std::barrier<> start_line(static_cast<std::ptrdiff_t>(mode_.threads));
  RunPinned(mode_.threads, [&](std::size_t index) {
    Member& member = *members_[index];
    // A thread's first calls into the libraries take memory.
    DropGradient drop;
    for (int i = 0; i < kWarmUpBatches; ++i) {
      member.context->Train(static_cast<std::int64_t>(options_.batch_size),
                            weights_.span(),
                            drop,
                            /*dropout_seed=*/0);
    }
    start_line.arrive_and_wait();
    member.start = Clock::now();
    const auto deadline = member.start + std::chrono::duration<double>(seconds);
    const double processor_start = ThreadSeconds();
    std::uint64_t taken = 0;
    while (Clock::now() < deadline &&
           (taken = next.fetch_add(1, std::memory_order_relaxed)) < most_batches) {
      const std::size_t place = (taken % batches_in_order) * options_.batch_size;
      TakeBatch(member,
                examples,
                order.subspan(place, options_.batch_size),
                (trained_batches_ + taken) * options_.batch_size);
    }
    member.processor_seconds = ThreadSeconds() - processor_start;
    member.end = Clock::now();
  });
  const std::uint64_t batches = std::min(next.load(), most_batches);
  trained_batches_ += batches;
  return WorkOf(batches * options_.batch_size);
}

Work Trainer::WorkOf(std::uint64_t examples) const {
  Work work = {.examples = examples};
  Clock::time_point start = Clock::time_point::max();
  Clock::time_point end = Clock::time_point::min();
  for (const auto& member : members_) {
    start = std::min(start, member->start);
    end = std::max(end, member->end);
    work.processor_seconds += member->processor_seconds;
  }
  work.seconds = std::chrono::duration<double>(end - start).count();
  return work;
}

double Trainer::Top1(const Examples& examples) const {
  graph::Context& context = *members_[0]->context;
  std::int64_t correct = 0;
  for (std::size_t first = 0; first < examples.size(); first += options_.batch_size) {
    const std::size_t count = std::min(options_.batch_size, examples.size() - first);
    std::ranges::copy(
        std::span(examples.inputs).subspan(first * examples.features, count * examples.features),
        context.input().begin());
    std::copy_n(examples.labels.begin() + static_cast<std::ptrdiff_t>(first),
                count,
                context.labels().begin());
    correct += context.Evaluate(static_cast<std::int64_t>(count), weights_.span()).correct;
  }
  return static_cast<double>(correct) / static_cast<double>(examples.size());
}

}  // namespace adamant::bench
