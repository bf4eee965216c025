// How much of a core's matrix speed a training step of adam-mnist reaches.
//
//   make bench
//   build/release/bench/engine_bench --benchmark_repetitions=5
//
// "share" is the step's arithmetic speed over that of a 1024^3 single-precision matrix product,
// measured just before on the same thread. Times are CPU times of the one thread that works, so
// that others on the machine disturb little.

#include <benchmark/benchmark.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "services/common/base/rng.h"
#include "services/common/graph/context.h"
#include "services/common/graph/lower.h"
#include "services/common/kernels/backend.h"
#include "services/common/kernels/hogwild.h"
#include "services/common/kernels/product_speed.h"
#include "services/common/kernels/thread_mode.h"
#include "services/common/model/model.h"
#include "services/common/tensor/shard_layout.h"
#include "tests/bench/drop_gradient.h"

namespace adamant {
namespace {

constexpr std::int64_t kSide = 1024;
constexpr double kProductFlop = 2.0 * kSide * kSide * kSide;

void Product(const std::vector<float>& a, const std::vector<float>& b, std::vector<float>& c) {
  dnnl_sgemm(
      'N', 'N', kSide, kSide, kSide, 1.0f, a.data(), kSide, b.data(), kSide, 0.0f, c.data(), kSide);
}

void MatrixProduct(benchmark::State& state) {
  const kernels::ThreadMode mode;
  const std::vector<float> a(kSide * kSide, 0.5f);
  const std::vector<float> b(kSide * kSide, 0.25f);
  std::vector<float> c(kSide * kSide);
  for (auto _ : state) {
    Product(a, b, c);
  }
  state.counters["flop/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * kProductFlop, benchmark::Counter::kIsRate);
}
BENCHMARK(MatrixProduct)->Unit(benchmark::kMillisecond);

model::Graph AdamMnist() {
  auto graph = model::BuildGraph(*model::ReferenceNet("adam-mnist"));
  if (!graph.ok()) {
    std::cerr << graph.status() << '\n';
    std::exit(1);
  }
  return *std::move(graph);
}

/// A training context of adam-mnist with weights and a batch of noise.
struct Trainer {
  Trainer(std::int64_t batch, graph::BackendKind backend) {
    auto made = graph::Context::Create(net, batch, backend, /*training=*/true);
    if (!made.ok()) {
      std::cerr << made.status() << '\n';
      std::exit(1);
    }
    context = *std::move(made);
    const ShardLayout layout(net.parameters, 1);
    weights.resize(layout.elements());
    gradients.resize(layout.elements());
    for (const Shard& shard : layout.shards()) {
      const std::size_t begin = layout.OffsetOf(shard.tensor) + shard.begin;
      InitialiseShard(
          1, net.parameters[shard.tensor], shard, std::span(weights).subspan(begin, shard.size()));
    }
    Rng rng(1);
    for (float& value : context->input()) {
      value = static_cast<float>(rng.Normal());
    }
    for (std::int32_t& label : context->labels()) {
      label = static_cast<std::int32_t>(rng.Below(10));
    }
  }

  model::Graph net = AdamMnist();
  std::unique_ptr<graph::Context> context;
  std::vector<float> weights;
  std::vector<float> gradients;
};

/// One step: forward, loss, backward, gradients in place. No update of the weights.
void TrainStep(benchmark::State& state, graph::BackendKind backend) {
  const std::int64_t batch = state.range(0);
  Trainer trainer(batch, backend);
  const double product = kernels::ProductSpeed();
  for (auto _ : state) {
    trainer.context->Train(batch, trainer.weights, trainer.gradients, 1);
  }
  const double examples = static_cast<double>(state.iterations() * batch);
  const double flop = examples * static_cast<double>(trainer.net.flop_per_example);
  state.counters["examples/s"] = benchmark::Counter(examples, benchmark::Counter::kIsRate);
  state.counters["flop/s"] = benchmark::Counter(flop, benchmark::Counter::kIsRate);
  state.counters["share"] = benchmark::Counter(flop / product, benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(TrainStep, one_dnn, graph::BackendKind::kOneDnn)
    ->Arg(1)
    ->Arg(8)
    ->Arg(32)
    ->Arg(128)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(TrainStep, reference, graph::BackendKind::kReference)
    ->Arg(32)
    ->Unit(benchmark::kMicrosecond);

/// One layer of adam-mnist at batch 32, forward and backward, by its place among the layers as run.
void Layer(benchmark::State& state) {
  constexpr std::int64_t kBatch = 32;
  const model::Graph net = graph::Lower(AdamMnist());
  const auto index = static_cast<std::size_t>(state.range(0));
  const model::Graph::Node& node = net.nodes[index];
  const int from = node.inputs[0];
  auto backend = kernels::MakeOneDnnBackend();
  const kernels::Spec spec = {.layer = node.layer,
                              .inputs = {from < 0 ? net.input : net.nodes[from].output},
                              .output = node.output,
                              .batch = kBatch,
                              .training = true,
                              .layout = kernels::MapLayout::kChannelsLast,
                              .input_layout = kernels::MapLayout::kChannelsLast};
  auto kernel = (*backend)->Make(spec);
  const auto floats = [](const Shape& shape, std::int64_t copies) {
    return std::vector<float>(static_cast<std::size_t>(copies * *ElementCount(shape)), 0.5f);
  };
  std::vector<float> input = floats(spec.inputs[0], kBatch);
  std::vector<float> input_error = input;
  std::vector<float> output = floats(spec.output, kBatch);
  const std::vector<float> output_error = output;
  const Shape none = {1};
  std::vector<float> weight = floats(node.weight < 0 ? none : net.parameters[node.weight].shape, 1);
  std::vector<float> bias = floats(node.bias < 0 ? none : net.parameters[node.bias].shape, 1);
  std::vector<float> weight_gradient = weight;
  std::vector<float> bias_gradient = bias;
  bench::DropGradient sink;
  std::vector<std::uint8_t> kept(static_cast<std::size_t>((*kernel)->KeptBytes()));
  const float* const inputs[] = {input.data()};
  float* const input_errors[] = {from < 0 ? nullptr : input_error.data()};
  const kernels::Operands<float> operands = {.inputs = inputs,
                                             .output = output.data(),
                                             .weight = weight.data(),
                                             .bias = bias.data(),
                                             .kept = kept.data(),
                                             .output_error = output_error.data(),
                                             .input_errors = input_errors,
                                             .weight_gradient = weight_gradient.data(),
                                             .bias_gradient = bias_gradient.data(),
                                             .sink = &sink};
  const kernels::ThreadMode mode;
  for (auto _ : state) {
    (*kernel)->Forward(operands);
    (*kernel)->Backward(operands);
  }
  state.SetLabel(node.layer.name);
}
BENCHMARK(Layer)->DenseRange(0, 11)->Unit(benchmark::kMicrosecond);

/// Adding a step's change to the shared weights, 298,090 floats.
void Update(benchmark::State& state) {
  Trainer trainer(1, graph::BackendKind::kReference);
  for (auto _ : state) {
    kernels::HogwildAxpy(trainer.weights, -1e-6f, trainer.gradients);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(Update)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace adamant
