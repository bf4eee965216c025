// How fast updates are applied, multiplied out, and moved through loopback gRPC. Recorded in
// docs/bench/parameter_server.md.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "oneapi/dnnl/dnnl.h"
#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/check.h"
#include "services/common/base/clock.h"
#include "services/common/optimiser/rules.h"
#include "services/common/rpc/tune_malloc.h"
#include "services/common/storage/memory_store.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/parameter_server/core/shards/outer_product.h"
#include "services/parameter_server/rpc/gate/pending.h"
#include "tests/bench/servers/servers_here.h"
#include "tests/bench/servers/worker_stream.h"

namespace adamant::parameter_server {
namespace {

constexpr std::int64_t kShards = 256;  // of 1 MB: far more than any cache holds
constexpr std::size_t kShardElements = ShardLayout::kShardElements;
constexpr std::int64_t kShardBytes = ShardLayout::kShardBytes;
constexpr std::uint32_t kWriters = 4;

/// One tensor of kShards full shards. Nothing is flushed.
ParameterServerOptions Options(const ParameterOptimiser& optimiser) {
  return {.job_uid = 1,
          .writers = kWriters,
          .parameters = {{.name = "w",
                          .layer = "l",
                          .shape = {kShards, static_cast<std::int64_t>(kShardElements)}}},
          .optimisers = {optimiser},
          .flush = {.interval = std::chrono::hours(1), .bytes = std::uint64_t{1} << 60}};
}

/// A core alone, driven by the threads that push.
class Server final : private Driver {
 public:
  explicit Server(const ParameterOptimiser& optimiser)
      : core_(Options(optimiser), store_, clock_, *this) {
    Configuration record{.version = 1, .generation = 1, .replicas = {core_.options().self}};
    ADAMANT_CHECK(core_.ReadStored().ok(), "the disk is empty");
    core_.SetConfigurations(std::vector<Configuration>{record}, {});
    ADAMANT_CHECK(core_.DoStorage().ok(), "buckets are created");
    record.created = true;
    core_.SetConfigurations(std::vector<Configuration>{record}, {});
  }

  ParameterServer& core() { return core_; }

 private:
  void SendToPeer(const ServerId& /*to*/, PeerMessage /*message*/) override {}
  void Propose(const Proposal& /*proposal*/) override {}
  void Report(const BucketReport& /*report*/) override {}
  void WantApply() override {}
  void WantStorage() override {}

  storage::MemoryStore store_;
  SystemClock clock_;
  ParameterServer core_;
};

ParameterOptimiser OptimiserFor(std::int64_t rule) {
  switch (rule) {
    case 0:
      return {.location = OptimiserLocation::kWorker};
    case 1:
      return {.kind = OptimiserKind::kSgd, .rate = 1e-9};
    case 2:
      return {.kind = OptimiserKind::kMomentum, .rate = 1e-9, .momentum = 0.9};
    default:
      return {.kind = OptimiserKind::kAdagrad, .rate = 1e-9, .epsilon = 1e-8};
  }
}

/// The yardstick: y += a x over as much memory, by one thread.
void Axpy(benchmark::State& state) {
  std::vector<float> x(kShards * kShardElements, 1);
  std::vector<float> y(x.size(), 1);
  const RuleStep step{.kind = OptimiserKind::kSgd, .rate = 1e-9f};
  std::size_t shard = 0;
  for (auto _ : state) {
    ApplyGradient(step,
                  std::span(x).subspan(shard * kShardElements, kShardElements),
                  {},
                  std::span(y).subspan(shard * kShardElements, kShardElements));
    shard = (shard + 1) % kShards;
  }
  state.SetBytesProcessed(state.iterations() * kShardBytes);
}
BENCHMARK(Axpy)->UseRealTime();

/// Pushes of 16 dense updates each, from memory as large as the shards. Bytes are those pushed.
void Apply(benchmark::State& state) {
  static std::unique_ptr<Server> server;
  constexpr std::int64_t kUpdates = 16;
  if (state.thread_index() == 0) {
    server = std::make_unique<Server>(OptimiserFor(state.range(0)));
  }
  const std::vector<float> gradients(kShards * kShardElements / state.threads(), 1);
  const std::size_t gradient_shards = gradients.size() / kShardElements;
  const auto slot = static_cast<std::uint32_t>(state.thread_index());
  std::vector<std::uint64_t> sequences(kShards);
  std::int64_t next = 0;
  for (auto _ : state) {
    Push push{.writer = {.slot = slot, .incarnation = 1}};
    for (std::int64_t i = 0; i < kUpdates; ++i, next = (next + 1) % kShards) {
      push.updates.push_back(
          {.shard = static_cast<ShardId>(next),
           .configuration_version = 1,
           .sequence = ++sequences[next],
           .kind = state.range(0) == 0 ? UpdateKind::kWeightChange : UpdateKind::kGradient,
           .values = std::span(gradients).subspan((next % gradient_shards) * kShardElements,
                                                  kShardElements)});
    }
    Pending<std::vector<ShardAck>> pending;
    server->core().Submit(push, [&](std::vector<ShardAck> acks) { pending.Set(std::move(acks)); });
    const auto acks = pending.Wait([] { return false; });
    ADAMANT_CHECK(acks.has_value(), "the push is answered");
    for (const ShardAck& ack : *acks) {
      ADAMANT_CHECK(ack.outcome == PushOutcome::kApplied, "every update is applied");
    }
  }
  state.SetBytesProcessed(state.iterations() * kUpdates * kShardBytes);
}
BENCHMARK(Apply)->ArgName("rule")->DenseRange(0, 3)->UseRealTime();
BENCHMARK(Apply)->ArgName("rule")->Arg(0)->Arg(3)->Threads(2)->UseRealTime();

/// errors^T x activations for [outputs, inputs] = range(1), range(2) and range(0) rows.
struct Layer {
  explicit Layer(const benchmark::State& state)
      : rows(state.range(0)), outputs(state.range(1)), inputs(state.range(2)) {}

  [[nodiscard]] double Flops() const { return 2.0 * static_cast<double>(rows * outputs * inputs); }

  std::int64_t rows;
  std::int64_t outputs;
  std::int64_t inputs;
  std::vector<float> activations = std::vector<float>(rows * inputs, 1);
  std::vector<float> errors = std::vector<float>(rows * outputs, 1);
  std::vector<float> gradient = std::vector<float>(outputs * inputs);
};

void SetFlops(benchmark::State& state, const Layer& layer) {
  state.counters["FLOP/s"] =
      benchmark::Counter(layer.Flops(), benchmark::Counter::kIsIterationInvariantRate);
}

void OuterProduct(benchmark::State& state) {
  Layer layer(state);
  const Operands operands{.rows = static_cast<std::uint32_t>(layer.rows),
                          .inputs = static_cast<std::uint32_t>(layer.inputs),
                          .outputs = static_cast<std::uint32_t>(layer.outputs),
                          .activations = layer.activations,
                          .errors = layer.errors};
  for (auto _ : state) {
    parameter_server::OuterProduct(operands, 0, layer.gradient);
    benchmark::DoNotOptimize(layer.gradient.data());
  }
  SetFlops(state, layer);
}
BENCHMARK(OuterProduct)->Args({256, 400, 400})->Args({256, 256, 1024})->Args({32, 87, 3000});

void OuterProductSgemm(benchmark::State& state) {
  Layer layer(state);
  for (auto _ : state) {
    dnnl_sgemm('T',
               'N',
               layer.outputs,
               layer.inputs,
               layer.rows,
               1,
               layer.errors.data(),
               layer.outputs,
               layer.activations.data(),
               layer.inputs,
               0,
               layer.gradient.data(),
               layer.inputs);
  }
  SetFlops(state, layer);
}
BENCHMARK(OuterProductSgemm)->Args({256, 400, 400})->Args({256, 256, 1024})->Args({32, 87, 3000});

// --- Through loopback gRPC, with as many copies as range(0) says

constexpr std::int64_t kShardsPerMessage = 8;

v1::ExchangeRequest PushOf(std::uint32_t shards, Sequence sequence, ConfigurationVersion version) {
  v1::ExchangeRequest request;
  for (ShardId shard = 0; shard < shards; ++shard) {
    v1::ShardUpdate& update = *request.mutable_push()->add_updates();
    update.set_shard(shard);
    update.set_bucket_epoch(version);
    update.set_sequence(sequence);
  }
  return request;
}

/// Pushes `shards` updates of `elements` each in a message, with `window` messages under way.
void Push(benchmark::State& state,
          const ServersHere& servers,
          std::uint32_t shards,
          std::size_t elements,
          int window) {
  const auto values = std::make_shared<const std::vector<float>>(shards * elements, 1);
  WorkerStream stream(servers.address());
  Sequence sequence = 0;
  const auto send = [&] {
    stream.Send(PushOf(shards, ++sequence, servers.version()),
                {{std::as_bytes(std::span(*values)), values}});
  };
  for (int i = 1; i < window; ++i) {
    send();
  }
  for (auto _ : state) {
    send();
    stream.Receive();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(values->size() * 4));
  state.SetItemsProcessed(state.iterations() * shards);
}

/// 8 MB a message.
void LoopbackPush(benchmark::State& state) {
  const ServersHere servers(state.range(0), Options(OptimiserFor(0)));
  Push(state, servers, kShardsPerMessage, kShardElements, 2);
}
BENCHMARK(LoopbackPush)->ArgName("copies")->Arg(1)->Arg(3)->MeasureProcessCPUTime()->UseRealTime();

/// From sending 1 MB to its acknowledgement, one after the other.
void LoopbackLatency(benchmark::State& state) {
  const ServersHere servers(state.range(0), Options(OptimiserFor(0)));
  Push(state, servers, 1, kShardElements, 1);
}
BENCHMARK(LoopbackLatency)->ArgName("copies")->Arg(1)->Arg(3)->UseRealTime();

/// 4 KB each, spread over 64 buckets, 256 in a message.
void LoopbackSmall(benchmark::State& state) {
  constexpr std::int64_t kElements = 1024;
  ParameterServerOptions options = Options(OptimiserFor(0));
  options.buckets = 64;
  options.parameters.clear();
  for (int i = 0; i < 256; ++i) {
    options.parameters.push_back(
        {.name = "w" + std::to_string(i), .layer = "l", .shape = {kElements}});
  }
  options.optimisers.assign(options.parameters.size(), OptimiserFor(0));
  const ServersHere servers(state.range(0), options);
  Push(state, servers, 256, kElements, 2);
}
BENCHMARK(LoopbackSmall)->ArgName("copies")->Arg(1)->Arg(3)->UseRealTime();

void LoopbackFetch(benchmark::State& state) {
  const ServersHere servers(1, Options(OptimiserFor(0)));
  WorkerStream stream(servers.address());
  v1::ExchangeRequest request;
  for (ShardId shard = 0; shard < kShardsPerMessage; ++shard) {
    request.mutable_fetch()->add_shards(shard);
  }
  stream.Send(request, {});
  for (auto _ : state) {
    stream.Send(request, {});
    ADAMANT_CHECK(stream.Receive() == kShardsPerMessage * kShardBytes, "all values come");
  }
  state.SetBytesProcessed(state.iterations() * kShardsPerMessage * kShardBytes);
}
BENCHMARK(LoopbackFetch)->UseRealTime();

}  // namespace
}  // namespace adamant::parameter_server

int main(int argc, char** argv) {
  adamant::rpc::TuneMalloc();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
