// A training thread's whole step: gradient, update of the shared weights, accumulator; with one
// and two threads that share their weights.
//
//   make bench
//   build/release/bench/step_bench
//
// adam-mnist with momentum. "examples/s" is over wall time, of all threads together. "ping" is how
// long a cache line takes between two cores, in nanoseconds: half of there and back.

#include <benchmark/benchmark.h>

#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "services/common/base/rng.h"
#include "services/worker/core/local_update.h"
#include "services/worker/core/training_thread.h"

namespace adamant::worker {
namespace {

constexpr std::uint64_t kPushEvery = 8;

template <class T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::cerr << value.status() << '\n';
    std::exit(1);
  }
  return *std::move(value);
}

/// adam-mnist, its weights and how they are updated.
struct Job {
  explicit Job(std::uint64_t batch)
      : graph(Must(model::BuildGraph(*model::ReferenceNet("adam-mnist")))),
        layout(graph.parameters, 64) {
    UpdatePlanOptions options;
    options.optimisers.assign(graph.parameters.size(),
                              {.kind = OptimiserKind::kMomentum,
                               .location = OptimiserLocation::kWorker,
                               .rate = 0.001,
                               .schedule = {},
                               .momentum = 0.9});
    options.protocols.assign(graph.parameters.size(), UpdateProtocol::kGradients);
    options.push_every = kPushEvery;
    options.batch_size = batch;
    plan = Must(UpdatePlan::Make(graph, layout, options));
    weights = FloatBuffer(plan.elements);
    for (const Shard& shard : layout.shards()) {
      const std::uint64_t begin = layout.OffsetOf(shard.tensor) + shard.begin;
      InitialiseShard(
          1, graph.parameters[shard.tensor], shard, weights.span().subspan(begin, shard.size()));
    }
  }

  const model::Graph graph;
  const ShardLayout layout;
  UpdatePlan plan;
  FloatBuffer weights;
};

/// How a step's gradient becomes a change of the weights.
enum class Way { kWhileComputed, kWhileComputedInStep, kStoredFirst };

/// One thread's context and arrays.
class Trainer {
 public:
  Trainer(Job& job, std::int64_t batch, Way way, double start)
      : job_(job),
        batch_(batch),
        context_(Must(graph::Context::Create(job.graph, batch, graph::Backend::kOneDnn, true))),
        state_(job.plan.elements),
        scratch_(UpdatePlan::kBlock),
        gradient_(way == Way::kStoredFirst ? job.plan.elements : 0),
        accumulator_(job.plan, job.layout.shards().size(), kPushEvery),
        update_(job.plan,
                {.weights = job.weights.span(), .state = state_.span(), .scratch = scratch_.span()},
                way == Way::kWhileComputedInStep ? 0 : start) {
    Rng rng(1);
    for (float& value : context_->input()) {
      value = static_cast<float>(rng.Normal());
    }
    for (std::int32_t& label : context_->labels()) {
      label = static_cast<std::int32_t>(rng.Below(10));
    }
  }

  void Step() {
    update_.Begin(0, accumulator_);
    const std::span<float> gradient = gradient_.span();
    if (gradient.empty()) {
      context_->Train(batch_, job_.weights.span(), update_, 1);
    } else {
      context_->Train(batch_, job_.weights.span(), gradient, 1);
      for (const TensorPlan& tensor : job_.plan.tensors) {
        update_.Take(tensor.offset, gradient.subspan(tensor.offset, tensor.size));
      }
    }
    accumulator_.steps = (accumulator_.steps + 1) % kPushEvery;
  }

 private:
  Job& job_;
  const std::int64_t batch_;
  const std::unique_ptr<graph::Context> context_;
  FloatBuffer state_;
  FloatBuffer scratch_;
  FloatBuffer gradient_;
  Accumulator accumulator_;
  LocalUpdate update_;
};

/// `threads` threads take steps for a while.
void Steps(benchmark::State& state, Way way) {
  using Seconds = std::chrono::duration<double>;
  const std::int64_t batch = state.range(0);
  const std::int64_t threads = state.range(1);
  Job job(static_cast<std::uint64_t>(batch));
  std::uint64_t examples = 0;
  double seconds = 0;
  for (auto _ : state) {
    const std::int64_t steps = std::max<std::int64_t>(4000 / (batch + 7), 20);
    std::barrier ready(threads + 1);
    std::vector<std::jthread> running;
    for (std::int64_t i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        Trainer trainer(job, batch, way, static_cast<double>(i) / static_cast<double>(threads));
        for (int step = 0; step < 5; ++step) {
          trainer.Step();
        }
        ready.arrive_and_wait();
        for (std::int64_t step = 0; step < steps; ++step) {
          trainer.Step();
        }
        ready.arrive_and_wait();
      });
    }
    ready.arrive_and_wait();
    const auto begin = std::chrono::steady_clock::now();
    ready.arrive_and_wait();
    const double elapsed = Seconds(std::chrono::steady_clock::now() - begin).count();
    state.SetIterationTime(elapsed);
    seconds += elapsed;
    examples += static_cast<std::uint64_t>(steps * batch * threads);
  }
  state.counters["examples/s"] = static_cast<double>(examples) / seconds;
}

void Arguments(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"batch", "threads"})
      ->ArgsProduct({{1, 8, 32, 128}, {1, 2}})
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(Steps, while_computed, Way::kWhileComputed)->Apply(Arguments);
BENCHMARK_CAPTURE(Steps, while_computed_in_step, Way::kWhileComputedInStep)->Apply(Arguments);
BENCHMARK_CAPTURE(Steps, stored_first, Way::kStoredFirst)->Apply(Arguments);

}  // namespace
}  // namespace adamant::worker
