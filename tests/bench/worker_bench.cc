// What the services cost a worker: the training threads fed from memory, against the same threads
// fed and served by a data server and a parameter server.
//
//   make bench
//   build/release/bench/worker_bench
//
// Both train adam-mnist at batch 32 with momentum on the worker and fetchEvery = pushEvery = 8.
// "examples/s" is over wall time; WithServices counts examples that the data server has
// acknowledged, from the end of the first epoch to the end of the last.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/rng.h"
#include "services/worker/core/learner/local_update.h"
#include "services/worker/core/learner/training_thread.h"
#include "tests/bench/adam_mnist_job.h"

namespace adamant::worker {
namespace {

constexpr std::size_t kBatch = 32;
constexpr std::uint64_t kEvery = 8;

/// The training threads of a worker without its exchange: batches come from memory, what is handed
/// over is dropped, nothing is fetched.
class MemoryFedWorker {
 public:
  explicit MemoryFedWorker(std::size_t threads)
      : job_(kBatch, kEvery, threads),
        options_{.threads = threads,
                 .fetch_every = 0,
                 .push_every = kEvery,
                 .batch_size = kBatch,
                 .prefetch = 4,
                 .seed = 1,
                 .backend = graph::BackendKind::kOneDnn},
        learner_(options_,
                 job_.graph,
                 job_.layout,
                 job_.plan,
                 [this] { intake_.slot_notifier().Notify(); }),
        intake_(options_, job_.graph, learner_.notifier()) {
    if (!intake_.SetNormalisation({.mean = {128}, .deviation = {64}}).ok()) {
      std::exit(1);
    }
    for (const Shard& shard : job_.layout.shards()) {
      const Parameter& parameter = job_.graph.parameters[shard.tensor];
      const std::uint64_t begin = job_.layout.OffsetOf(shard.tensor) + shard.begin;
      InitialiseShard(1, parameter, shard, learner_.weights().subspan(begin, shard.size()));
    }
    learner_.EndReset();
    feeder_ = std::jthread([this] { Feed(); });
    for (std::size_t i = 0; i < threads; ++i) {
      threads_.emplace_back(
          [this, i] { bench::Must(TrainingThread::Create(learner_, intake_, i, clock_))->Run(); });
    }
  }

  ~MemoryFedWorker() {
    learner_.commands().Stop();
    learner_.notifier().Notify();
    threads_.clear();
    stopped_ = true;
    intake_.slot_notifier().Notify();
  }

  [[nodiscard]] std::uint64_t steps() const { return learner_.steps(); }

  /// Seconds that all threads together waited for batches and accumulators.
  [[nodiscard]] double waited() const {
    std::uint64_t nanoseconds = 0;
    for (std::size_t i = 0; i < learner_.threads(); ++i) {
      for (const auto& wait : learner_.channel(i).statistics().wait_nanoseconds) {
        nanoseconds += wait.load();
      }
    }
    return static_cast<double>(nanoseconds) * 1e-9;
  }

 private:
  void Feed() {
    Rng rng(1);
    while (!stopped_) {
      const std::uint32_t seen = intake_.slot_notifier().Read();
      while (Batch* const batch = intake_.TakeSlot()) {
        if (batch->examples == 0) {
          Fill(rng, *batch);
        }
        intake_.Put(batch);
      }
      for (std::size_t i = 0; i < learner_.threads(); ++i) {
        ThreadChannel& channel = learner_.channel(i);
        while (const ThreadEvent* const event = channel.Front()) {
          if (event->accumulator != nullptr) {
            event->accumulator->Clear();
            channel.Recycle(event->accumulator);
          }
          channel.Pop();
        }
      }
      learner_.notifier().Notify();
      intake_.slot_notifier().Wait(seen);
    }
  }

  static void Fill(Rng& rng, Batch& batch) {
    batch.examples = kBatch;
    batch.lease.batch.epoch = 1;
    for (std::uint8_t& pixel : batch.pixels) {
      pixel = static_cast<std::uint8_t>(rng.Below(256));
    }
    for (std::int32_t& label : batch.labels) {
      label = static_cast<std::int32_t>(rng.Below(10));
    }
  }

  const bench::AdamMnistJob job_;
  const SystemClock clock_;
  const WorkerOptions options_;
  Learner learner_;
  Intake intake_;
  std::atomic<bool> stopped_{false};
  std::jthread feeder_;
  std::vector<std::jthread> threads_;
};

void FedFromMemory(benchmark::State& state) {
  const auto threads = static_cast<std::size_t>(state.range(0));
  MemoryFedWorker worker(threads);
  while (worker.steps() < 100 * threads) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::uint64_t steps = 0;
  double seconds = 0;
  const double waited = worker.waited();
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    const std::uint64_t before = worker.steps();
    std::this_thread::sleep_for(std::chrono::seconds(2));
    const double elapsed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    steps += worker.steps() - before;
    seconds += elapsed;
    state.SetIterationTime(elapsed);
  }
  state.counters["examples/s"] = static_cast<double>(steps * kBatch) / seconds;
  state.counters["waiting"] = (worker.waited() - waited) / (seconds * static_cast<double>(threads));
}
BENCHMARK(FedFromMemory)->Arg(1)->Arg(2)->UseManualTime()->Iterations(3)->Unit(benchmark::kSecond);

/// What a thread's step costs beyond its gradient: the rule, the shared weights, the accumulator.
void Update(benchmark::State& state) {
  const bench::AdamMnistJob job(kBatch, kEvery, 1);
  Accumulator accumulator(job.plan, job.layout.shards().size(), kEvery);
  FloatBuffer gradient(job.plan.elements);
  FloatBuffer momentum(job.plan.elements);
  FloatBuffer weights(job.plan.elements);
  FloatBuffer scratch(UpdatePlan::kBlock);
  LocalUpdate update(job.plan,
                     {.weights = weights.span(),
                      .state = momentum.span(),
                      .pending = {},
                      .scratch = scratch.span()},
                     {});
  for (auto _ : state) {
    update.Begin(0, accumulator);
    for (const TensorPlan& tensor : job.plan.tensors) {
      update.Take(tensor.offset, gradient.span().subspan(tensor.offset, tensor.size));
    }
    accumulator.steps = (accumulator.steps + 1) % kEvery;
  }
}
BENCHMARK(Update)->Unit(benchmark::kMicrosecond);

std::string Manifest(std::int64_t threads) {
  std::ostringstream yaml;
  yaml << "apiVersion: adamant.dev/v1alpha1\n"
          "kind: TrainingJob\n"
          "metadata: {name: worker-bench}\n"
          "spec:\n"
          "  model: {reference: adam-mnist}\n"
          "  data:\n"
          "    train: {digits: {seed: 1, examples: 60000}}\n"
          "    validation: {digits: {seed: 2, examples: 1000}}\n"
          "    batchSize: 32\n"
          "  optimiser: {kind: Momentum, location: Worker, rate: 0.001}\n"
          "  distribution:\n"
          "    workers: 1\n"
          "    threadsPerWorker: "
       << threads
       << "\n"
          "    parameterServers: {count: 1}\n"
          "    fetchEvery: 8\n"
          "    pushEvery: 8\n"
          "  runPolicy: {epochs: 4}\n";
  return yaml.str();
}

/// The mean of a column of the run's metrics over all epochs but the first.
double MeanOf(const std::filesystem::path& csv, const std::string& column) {
  std::ifstream file(csv);
  std::string line;
  std::getline(file, line);
  std::istringstream header(line);
  std::size_t position = 0;
  for (std::string name; std::getline(header, name, ',') && name != column;) {
    ++position;
  }
  double sum = 0;
  int rows = -1;
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::string cell;
    for (std::size_t i = 0; i <= position; ++i) {
      std::getline(cells, cell, ',');
    }
    if (++rows > 0) {
      sum += std::stod(cell);
    }
  }
  return rows > 0 ? sum / rows : 0;
}

void WithServices(benchmark::State& state) {
  const std::filesystem::path build =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("worker_bench_" + std::to_string(getpid()));
  for (auto _ : state) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "job.yaml") << Manifest(state.range(0));
    const std::string command = (build / "bin" / "adamant").string() + " train " +
                                (folder / "job.yaml").string() + " --run-dir " +
                                (folder / "run").string() + " > " + (folder / "out").string();
    if (std::system(command.c_str()) != 0) {
      state.SkipWithError("adamant train failed; build the product first");
      return;
    }
    const double speed = MeanOf(folder / "run" / "metrics.csv", "examples_per_second");
    state.counters["examples/s"] = speed;
    state.SetIterationTime(3 * 60000 / speed);
  }
  std::filesystem::remove_all(folder);
}
BENCHMARK(WithServices)->Arg(1)->Arg(2)->UseManualTime()->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace adamant::worker
