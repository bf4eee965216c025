// How much of a core's matrix speed the kernels of single layers reach: our own, for maps with the
// batch innermost and, for few examples, with the channels last, beside oneDNN's, which are for the
// latter too.
//
//   make bench
//   build/release/bench/kernel_bench --benchmark_filter=adam_mnist
//
// A benchmark's name is layer/batch/kernel/pass. The passes are the forward one, the gradients of
// weights and bias, and the errors of the inputs (the time of a whole Backward less that of one
// without them). "share" is the speed over that of a 1024^3 single-precision matrix product,
// measured just before. Times are CPU times of the one thread that works.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "services/common/base/rng.h"
#include "services/common/kernels/isa.h"
#include "services/common/kernels/native/batch_innermost.h"
#include "services/common/kernels/native/channels_last.h"
#include "services/common/kernels/native/lanes.h"
#include "services/common/kernels/native/pool.h"
#include "services/common/kernels/onednn/operation_onednn.h"
#include "services/common/kernels/product_speed.h"
#include "services/common/kernels/thread_mode.h"
#include "services/common/model/analysis.h"

namespace adamant::kernels {
namespace {

/// CPU time of this thread.
double CpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

enum class Pass { kForward, kParameters, kErrors };

constexpr std::pair<Pass, const char*> kPasses[] = {
    {Pass::kForward, "forward"}, {Pass::kParameters, "parameters"}, {Pass::kErrors, "errors"}};

struct Case {
  std::string name;
  model::Layer layer;
  Shape input;
};

/// Who wrote a kernel, and for which maps.
enum class Family { kBatchInnermost, kChannelsLast, kOneDnn };

Spec SpecOf(const Case& c, std::int64_t batch, Family family) {
  const MapLayout layout =
      family == Family::kBatchInnermost ? MapLayout::kBatchInnermost : MapLayout::kChannelsLast;
  return {.layer = c.layer,
          .inputs = {c.input},
          .output = std::get<Shape>(model::internal::InferShape(c.layer, {c.input})),
          .batch = batch,
          .training = true,
          .layout = layout,
          .input_layout = layout};
}

/// A layer's kernel and all it reads and writes, full of noise.
class Layer {
 public:
  Layer(const Spec& spec, Kernel<float>& kernel)
      : kernel_(kernel),
        repetitions_(kLanes / spec.batch),
        kept_(static_cast<std::size_t>(kernel.KeptBytes())) {
    Rng rng(1);
    const auto noise = [&](std::int64_t count) {
      std::vector<float> values(static_cast<std::size_t>(count));
      std::generate(values.begin(), values.end(), [&] { return static_cast<float>(rng.Normal()); });
      return values;
    };
    input_ = input_error_ = noise(spec.batch * *ElementCount(spec.inputs[0]));
    output_ = output_error_ = noise(spec.batch * *ElementCount(spec.output));
    if (const auto shape = model::internal::WeightShape(spec.layer, spec.inputs[0])) {
      weight_ = weight_gradient_ = noise(*ElementCount(*shape));
      bias_ = bias_gradient_ = noise(shape->front());
    }
    Run(Pass::kForward);  // for what backward passes find
  }

  /// CPU seconds that the pass takes; short ones are repeated, for the clock takes its time too.
  double Run(Pass pass) {
    const float* const input = input_.data();
    float* const error = pass == Pass::kErrors ? input_error_.data() : nullptr;
    const Operands<float> operands = {.inputs = {&input, 1},
                                      .output = output_.data(),
                                      .weight = weight_.data(),
                                      .bias = bias_.data(),
                                      .kept = kept_.data(),
                                      .output_error = output_error_.data(),
                                      .input_errors = {&error, 1},
                                      .weight_gradient = weight_gradient_.data(),
                                      .bias_gradient = bias_gradient_.data()};
    const double start = CpuSeconds();
    for (std::int64_t i = 0; i < repetitions_; ++i) {
      if (pass == Pass::kForward) {
        kernel_.Forward(operands);
      } else {
        kernel_.Backward(operands);
      }
    }
    const double time = (CpuSeconds() - start) / static_cast<double>(repetitions_);
    return pass == Pass::kErrors && !weight_.empty() ? time - Run(Pass::kParameters) : time;
  }

 private:
  Kernel<float>& kernel_;
  const std::int64_t repetitions_;
  std::vector<float> input_, input_error_, output_, output_error_;
  std::vector<float> weight_, weight_gradient_, bias_, bias_gradient_;
  std::vector<std::uint8_t> kept_;
};

/// Multiply-adds that are no multiplication by padding, two operations each.
double FlopOf(const Spec& spec) {
  const model::Layer& l = spec.layer;
  const auto taps =
      [](std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t padding) {
        std::int64_t count = 0;
        for (std::int64_t at = -padding; at < out - padding; ++at) {
          count += std::min(at + kernel, in) - std::max<std::int64_t>(at, 0);
        }
        return static_cast<double>(count);
      };
  const Shape& in = spec.inputs[0];
  return 2.0 * static_cast<double>(spec.batch * in[0] * spec.output[0]) *
         taps(in[1], spec.output[1], l.kernel.height, l.padding.height) *
         taps(in[2], spec.output[2], l.kernel.width, l.padding.width);
}

/// What a layer's input and output hold.
double BytesOf(const Spec& spec) {
  return sizeof(float) * static_cast<double>(spec.batch * (*ElementCount(spec.inputs[0]) +
                                                           *ElementCount(spec.output)));
}

std::unique_ptr<Kernel<float>> Make(const Spec& spec, Family family, internal::OneDnn& dnn) {
  const bool convolution = spec.layer.kind == model::LayerKind::kConv2d;
  switch (family) {
    case Family::kBatchInnermost:
      return convolution ? internal::MakeConv2dBatchInnermost(spec) : internal::MakePool(spec);
    case Family::kChannelsLast:
      return convolution ? internal::MakeConv2dChannelsLast(spec) : internal::MakePool(spec);
    case Family::kOneDnn:
      break;
  }
  return convolution ? internal::MakeConv2dOneDnn(dnn, spec) : internal::MakePoolOneDnn(dnn, spec);
}

benchmark::Counter Rate(const benchmark::State& state, double per_iteration) {
  return {static_cast<double>(state.iterations()) * per_iteration, benchmark::Counter::kIsRate};
}

void Measure(benchmark::State& state, const Case& c, std::int64_t batch, Family family, Pass pass) {
  const ThreadMode mode;
  internal::OneDnn dnn;
  const Spec spec = SpecOf(c, batch, family);
  const auto kernel = Make(spec, family, dnn);
  Layer layer(spec, *kernel);
  layer.Run(Pass::kForward);
  const double product = ProductSpeed();
  for (auto _ : state) {
    state.SetIterationTime(layer.Run(pass));
  }
  if (c.layer.kind == model::LayerKind::kConv2d) {
    state.counters["flop/s"] = Rate(state, FlopOf(spec));
    state.counters["share"] = Rate(state, FlopOf(spec) / product);
  } else {
    state.counters["bytes/s"] = Rate(state, BytesOf(spec));
  }
}

model::Layer Convolution(std::int64_t channels, std::int64_t kernel, std::int64_t padding) {
  model::Layer layer;
  layer.kind = model::LayerKind::kConv2d;
  layer.channels = channels;
  layer.kernel = {kernel, kernel};
  layer.padding = {padding, padding};
  return layer;
}

model::Layer MaxPool(std::int64_t size, std::int64_t stride, std::int64_t padding) {
  model::Layer layer;
  layer.kind = model::LayerKind::kMaxPool;
  layer.kernel = {size, size};
  layer.stride = {stride, stride};
  layer.padding = {padding, padding};
  return layer;
}

void Add(const Case& c,
         std::int64_t batch,
         Family family,
         const std::string& family_name,
         std::pair<Pass, const char*> pass) {
  const std::string name =
      c.name + "/" + std::to_string(batch) + "/" + family_name + "/" + pass.second;
  const auto run = [=](benchmark::State& state) { Measure(state, c, batch, family, pass.first); };
  // Few examples are run several times for each time that counts, so that less of it is enough.
  constexpr double kSeconds = 0.1;
  benchmark::RegisterBenchmark(name.c_str(), run)
      ->UseManualTime()
      ->MinTime(kSeconds * static_cast<double>(batch) / static_cast<double>(kLanes))
      ->Unit(benchmark::kMicrosecond);
}

void Register() {
  if (const absl::Status limited = LimitIsaFromEnvironment(); !limited.ok()) {
    std::cerr << limited << '\n';
    std::exit(1);
  }
  const Case cases[] = {{"adam_mnist_conv1", Convolution(10, 5, 0), {1, 28, 28}},
                        {"adam_mnist_pool1", MaxPool(2, 2, 0), {10, 24, 24}},
                        {"adam_mnist_conv2", Convolution(20, 5, 0), {10, 12, 12}},
                        {"adam_mnist_pool2", MaxPool(2, 2, 0), {20, 8, 8}},
                        {"cifar_conv1", Convolution(32, 5, 2), {3, 32, 32}},
                        {"cifar_pool1", MaxPool(3, 2, 1), {32, 32, 32}},
                        {"cifar_conv2", Convolution(32, 5, 2), {32, 16, 16}},
                        {"cifar_conv3", Convolution(64, 5, 2), {32, 8, 8}}};
  for (const Case& c : cases) {
    const bool convolution = c.layer.kind == model::LayerKind::kConv2d;
    for (const auto& [pass, pass_name] : kPasses) {
      if (pass == Pass::kParameters && !convolution) {
        continue;
      }
      for (const std::int64_t batch : {std::int64_t{1}, std::int64_t{2}, std::int64_t{4}, kLanes}) {
        if (batch < kLanes) {
          Add(c, batch, Family::kChannelsLast, "own", {pass, pass_name});
        } else {
          Add(c, batch, Family::kBatchInnermost, "own", {pass, pass_name});
        }
        Add(c, batch, Family::kOneDnn, "one_dnn", {pass, pass_name});
      }
    }
  }
}

/// An image per example, as the data server gives them, into blocks.
void ImagesToBlocks(benchmark::State& state) {
  constexpr std::int64_t kBatch = 32;
  constexpr std::int64_t kPlane = 784;
  const LaneShape shape = {.batch = kBatch, .channels = 1, .plane = kPlane, .rows = kBatch};
  const std::vector<float> from(kBatch * kPlane, 1);
  std::vector<float> to(from.size());
  for (auto _ : state) {
    ToBatchInnermost(shape, MapLayout::kChannelsFirst, from.data(), to.data());
    benchmark::ClobberMemory();
  }
  state.counters["bytes/s"] = Rate(state, 2.0 * sizeof(float) * kBatch * kPlane);
}
BENCHMARK(ImagesToBlocks)->Unit(benchmark::kMicrosecond);

const bool kRegistered = (Register(), true);

}  // namespace
}  // namespace adamant::kernels
