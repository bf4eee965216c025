// A training thread's whole step: gradient, update of the shared weights, accumulator; with one
// and two threads that share their weights.
//
//   make bench
//   build/release/bench/step_bench
//
// adam-mnist with momentum. Threads work in slices of some milliseconds; counted are those in which
// all threads worked at the same time and had their cores to themselves (CPU time over 97% of the
// time), and the median of them is reported: "kept" is their share. "ping" is CacheLinePing just
// before, in nanoseconds.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "services/common/base/rng.h"
#include "services/common/base/system/cache_line_ping.h"
#include "services/worker/core/learner/local_update.h"
#include "services/worker/core/learner/training_thread.h"
#include "tests/bench/adam_mnist_job.h"

namespace adamant::worker {
namespace {

constexpr std::uint64_t kPushEvery = 8;

/// adam-mnist and its weights.
struct Job : bench::AdamMnistJob {
  explicit Job(std::size_t batch) : AdamMnistJob(batch, kPushEvery, 1), weights(plan.elements) {
    for (const Shard& shard : layout.shards()) {
      const std::uint64_t begin = layout.OffsetOf(shard.tensor) + shard.begin;
      InitialiseShard(
          1, graph.parameters[shard.tensor], shard, weights.span().subspan(begin, shard.size()));
    }
  }

  FloatBuffer weights;
};

/// How a step's gradient becomes a change of the weights.
struct Way {
  bool stored_first = false;  ///< the gradient as a whole, then the update
  bool in_step = false;       ///< all threads sweep the weights from the first on
  std::uint64_t share_every = 1;
  bool sums = false;  ///< changes are added up though one thread is alone
};

/// One thread's context and arrays.
class Trainer {
 public:
  Trainer(Job& job, std::int64_t batch, Way way, bool alone, double start)
      : job_(job),
        batch_(batch),
        context_(bench::Must(
            graph::Context::Create(job.graph, batch, graph::BackendKind::kOneDnn, true))),
        state_(job.plan.StateSize()),
        pending_(way.share_every > 1 ? job.plan.elements : 0),
        scratch_(UpdatePlan::kBlock),
        gradient_(way.stored_first ? job.plan.elements : 0),
        accumulator_(job.plan, job.layout.shards().size(), kPushEvery),
        update_(job.plan,
                {.weights = job.weights.span(),
                 .state = state_.span(),
                 .pending = pending_.span(),
                 .scratch = scratch_.span()},
                {.share_every = way.share_every,
                 .alone = alone && !way.sums,
                 .start = way.in_step ? 0 : start}) {
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
  FloatBuffer pending_;
  FloatBuffer scratch_;
  FloatBuffer gradient_;
  Accumulator accumulator_;
  LocalUpdate update_;
};

double CpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// One slice of one thread.
struct Slice {
  double begin = 0;
  double end = 0;
  double cpu = 0;
};

/// Threads that work slice by slice, all at a time.
class Team {
 public:
  Team(Job& job, std::int64_t batch, std::int64_t threads, Way way)
      : steps_(std::max<std::int64_t>(120 / (batch + 7), 1)),
        slices_(static_cast<std::size_t>(threads)),
        ready_(threads + 1) {
    for (std::int64_t i = 0; i < threads; ++i) {
      threads_.emplace_back([this, &job, batch, threads, way, i] {
        const auto count = static_cast<double>(slices_.size());
        Trainer trainer(job, batch, way, threads == 1, static_cast<double>(i) / count);
        trainer.Step();
        ready_.arrive_and_wait();
        Work(trainer, slices_[static_cast<std::size_t>(i)]);
      });
    }
    ready_.arrive_and_wait();
  }

  ~Team() {
    over_ = true;
    ready_.arrive_and_wait();
  }

  /// Steps per second of all threads; 0 when one was disturbed, or they did not work together.
  double Run() {
    ready_.arrive_and_wait();
    ready_.arrive_and_wait();
    double speed = 0;
    double begin = 0;                                      // of the last
    double end = std::numeric_limits<double>::infinity();  // of the first
    double longest = 0;
    for (const Slice& slice : slices_) {
      const double elapsed = slice.end - slice.begin;
      if (slice.cpu < 0.97 * elapsed) {
        return 0;
      }
      speed += static_cast<double>(steps_) / elapsed;
      begin = std::max(begin, slice.begin);
      end = std::min(end, slice.end);
      longest = std::max(longest, elapsed);
    }
    return end - begin > 0.8 * longest ? speed : 0;
  }

 private:
  void Work(Trainer& trainer, Slice& slice) {
    for (;;) {
      ready_.arrive_and_wait();
      if (over_) {
        return;
      }
      trainer.Step();  // until the others have begun
      const double cpu = CpuSeconds();
      slice.begin = Seconds();
      for (std::int64_t step = 0; step < steps_; ++step) {
        trainer.Step();
      }
      slice.end = Seconds();
      slice.cpu = CpuSeconds() - cpu;
      ready_.arrive_and_wait();
    }
  }

  const std::int64_t steps_;
  std::vector<Slice> slices_;
  std::barrier<> ready_;
  std::atomic<bool> over_{false};
  std::vector<std::jthread> threads_;
};

void Steps(benchmark::State& state, Way way) {
  constexpr double kSeconds = 1;
  const std::int64_t batch = state.range(0);
  const std::int64_t threads = state.range(1);
  Job job(static_cast<std::size_t>(batch));
  for (auto _ : state) {
    state.counters["ping"] = CacheLinePing().value_or(0);
    Team team(job, batch, threads, way);
    std::vector<double> speeds;
    double slices = 0;
    for (const double begin = Seconds(); Seconds() < begin + kSeconds; ++slices) {
      if (const double speed = team.Run(); speed > 0) {
        speeds.push_back(speed);
      }
    }
    std::sort(speeds.begin(), speeds.end());
    state.counters["kept"] = static_cast<double>(speeds.size()) / slices;
    state.counters["examples/s"] =
        speeds.empty() ? 0 : static_cast<double>(batch) * speeds[speeds.size() / 2];
  }
}

void Arguments(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"batch", "threads"})
      ->ArgsProduct({{1, 8, 32, 128}, {1, 2}})
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(Steps, handed_over, Way{})->Apply(Arguments);
BENCHMARK_CAPTURE(Steps, handed_over_in_step, Way{.in_step = true})->Apply(Arguments);
BENCHMARK_CAPTURE(Steps, stored_first, Way{.stored_first = true})->Apply(Arguments);
BENCHMARK_CAPTURE(Steps, added_up, Way{.sums = true})->Apply(Arguments);
BENCHMARK_CAPTURE(Steps, every_second, Way{.share_every = 2})->Apply(Arguments);
BENCHMARK_CAPTURE(Steps, every_fourth, Way{.share_every = 4})->Apply(Arguments);

}  // namespace
}  // namespace adamant::worker
