// Two fully connected layers with their updates, by batch: our kernel for small batches against
// matrix products. Decides kSmallBatch, and how many rows the products hand over at a time.
//
//   make bench
//   build/release/bench/fully_connected_bench
//
// in -> out and out -> out, as in adam-mnist (320, 400) and in adam-imagenet (2400, 3000), in turn,
// so that caches hold what they hold in a step. CPU time.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "services/common/kernels/native/fully_connected.h"
#include "services/common/kernels/onednn/operation_onednn.h"
#include "services/common/kernels/thread_mode.h"
#include "services/common/kernels/vector_ops.h"
#include "services/common/optimiser/rules.h"

namespace adamant::kernels {
namespace {

/// Momentum, an accumulator and the weights, as a training thread does it.
class Update final : public GradientSink {
 public:
  explicit Update(std::vector<float>& weights)
      : weights_(weights), momentum_(weights.size()), accumulator_(weights.size()) {}

  void Take(std::size_t begin, std::span<float> gradient) override {
    for (std::size_t at = 0; at < gradient.size(); at += kBlock) {
      Block(begin + at, gradient.subspan(at, std::min(kBlock, gradient.size() - at)));
    }
  }

 private:
  static constexpr std::size_t kBlock = 2048;

  void Block(std::size_t begin, std::span<float> gradient) {
    const auto part = [&](std::vector<float>& all) {
      return std::span(all).subspan(begin, gradient.size());
    };
    ShareChange({.kind = OptimiserKind::kMomentum, .rate = 1e-4f, .momentum = 0.9f},
                gradient,
                part(momentum_),
                Accrual::kAdd,
                part(accumulator_),
                part(weights_));
  }

  std::vector<float>& weights_;
  std::vector<float> momentum_;
  std::vector<float> accumulator_;
};

struct Layer {
  Layer(std::int64_t batch, std::int64_t in, std::int64_t out, bool own)
      : weight(static_cast<std::size_t>(in * out), 0.01f),
        bias(static_cast<std::size_t>(out)),
        bias_gradient(bias),
        input(static_cast<std::size_t>(batch * in), 0.5f),
        input_error(input),
        output(static_cast<std::size_t>(batch * out)),
        output_error(output.size(), 0.1f),
        update(weight) {
    Spec spec;
    spec.layer.kind = model::LayerKind::kFullyConnected;
    spec.inputs = {{in}};
    spec.output = {out};
    spec.batch = batch;
    spec.training = true;
    kernel = own ? internal::MakeFullyConnectedSmallBatch(spec)
                 : internal::MakeFullyConnectedOneDnn(spec);
    operands.inputs = {&inputs, 1};
    operands.output = output.data();
    operands.weight = weight.data();
    operands.bias = bias.data();
    operands.output_error = output_error.data();
    operands.input_errors = {&input_errors, 1};
    operands.bias_gradient = bias_gradient.data();
    operands.sink = &update;
  }

  std::vector<float> weight, bias, bias_gradient;
  std::vector<float> input, input_error, output, output_error;
  Update update;
  std::unique_ptr<Kernel<float>> kernel;
  const float* inputs = input.data();
  float* input_errors = input_error.data();
  Operands<float> operands;
};

void TwoLayers(benchmark::State& state, bool own) {
  const ThreadMode mode;
  Layer first(state.range(0), state.range(2), state.range(3), own);
  Layer second(state.range(0), state.range(3), state.range(3), own);
  for (auto _ : state) {
    first.kernel->Forward(first.operands);
    second.kernel->Forward(second.operands);
    if (state.range(1) != 0) {
      second.kernel->Backward(second.operands);
      first.kernel->Backward(first.operands);
    }
  }
  benchmark::DoNotOptimize(second.output.data());
}

void Arguments(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"batch", "backward", "in", "out"})
      ->ArgsProduct({{1, 2, 4, 8, 12, 16, 24, 32, 64, 128}, {0, 1}, {320}, {400}})
      ->ArgsProduct({{1, 4, 8, 16, 32, 128}, {0, 1}, {2400}, {3000}})
      ->Unit(benchmark::kMicrosecond);
}
BENCHMARK_CAPTURE(TwoLayers, own, true)->Apply(Arguments);
BENCHMARK_CAPTURE(TwoLayers, matrix_products, false)->Apply(Arguments);

}  // namespace
}  // namespace adamant::kernels
