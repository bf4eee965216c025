// How fast updates are applied, multiplied out, and moved through loopback gRPC. Recorded in
// docs/bench/parameter_server.md.
#include <benchmark/benchmark.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "oneapi/dnnl/dnnl.h"
#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/check.h"
#include "services/common/base/clock.h"
#include "services/common/metrics/metrics.h"
#include "services/common/optimiser/rules.h"
#include "services/common/rpc/frame.h"
#include "services/common/rpc/server.h"
#include "services/common/rpc/tune_malloc.h"
#include "services/common/storage/memory_store.h"
#include "services/parameter_server/core/outer_product.h"
#include "services/parameter_server/core/parameter_server.h"
#include "services/parameter_server/rpc/core_gate.h"
#include "services/parameter_server/rpc/exchange.h"
#include "services/parameter_server/rpc/traffic_metrics.h"

namespace adamant::parameter_server {
namespace {

constexpr std::int64_t kShards = 256;  // of 1 MB: far more than any cache holds
constexpr std::size_t kShardElements = ShardLayout::kShardElements;
constexpr std::int64_t kShardBytes = ShardLayout::kShardBytes;
constexpr std::uint32_t kWriters = 4;

/// A server that holds one tensor of kShards full shards.
class Server {
 public:
  explicit Server(const ParameterOptimiser& optimiser)
      : core_({.job_uid = 1,
               .writers = kWriters,
               .parameters = {{.name = "w",
                               .layer = "l",
                               .shape = {kShards, static_cast<std::int64_t>(kShardElements)}}},
               .optimisers = {optimiser}},
              store_,
              clock_) {
    for (const bool created : {false, true}) {
      core_.SetMap(std::vector<BucketRecord>{{.epoch = created ? 2u : 1u, .created = created}});
      ADAMANT_CHECK(core_.Prepare().ok(), "buckets are created");
    }
  }

  ParameterServer& core() { return core_; }

 private:
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
           .bucket_epoch = 2,
           .sequence = ++sequences[next],
           .kind = state.range(0) == 0 ? UpdateKind::kWeightChange : UpdateKind::kGradient,
           .values = std::span(gradients).subspan((next % gradient_shards) * kShardElements,
                                                  kShardElements)});
    }
    for (const ShardAck& ack : server->core().Apply(push)) {
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
    OuterProduct(operands, 0, layer.gradient);
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

/// A server behind loopback gRPC and a worker's stream to it, two requests in flight.
class Loopback {
 public:
  Loopback() : core_(OptimiserFor(0)) {
    rpc::TuneMalloc();
    gate_.Open(core_.core());
    auto server = rpc::StartServer(
        {.max_message_bytes = kMaxExchangeBytes},
        {},
        {{.name = "/adamant.v1.ParameterServer/Exchange",
          .handler = [this](rpc::FrameStream& s) { return ServeExchange(gate_, metrics_, s); }}});
    ADAMANT_CHECK(server.ok(), "the server starts");
    server_ = *std::move(server);
    stream_ = rpc::OpenFrameStream(
        server_->address(), "/adamant.v1.ParameterServer/Exchange", kMaxExchangeBytes);
    v1::ExchangeRequest hello;
    hello.mutable_hello()->set_format_version(1);
    hello.mutable_hello()->set_job_uid(1);
    Send(hello, {});
    Receive();
  }

  void Send(const v1::ExchangeRequest& request, std::vector<rpc::LentBytes> payload) {
    ADAMANT_CHECK(stream_->Write({request.SerializeAsString(), std::move(payload)}).ok(), "sent");
  }

  std::uint64_t Receive() {
    const auto frame = stream_->Read();
    ADAMANT_CHECK(frame.ok(), frame.status().ToString());
    return frame->payload_bytes();
  }

  ~Loopback() {
    stream_->Cancel();
    gate_.Close();
    server_->Stop();
  }

 private:
  Server core_;
  CoreGate gate_;
  metrics::Registry registry_;
  const TrafficMetrics metrics_{registry_};
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<rpc::FrameStream> stream_;
};

constexpr std::int64_t kShardsPerMessage = 8;

void LoopbackPush(benchmark::State& state) {
  Loopback loopback;
  const auto values =
      std::make_shared<const std::vector<float>>(kShardsPerMessage * kShardElements, 1);
  std::uint64_t sequence = 0;
  const auto send = [&] {
    ++sequence;
    v1::ExchangeRequest request;
    for (std::uint32_t shard = 0; shard < kShardsPerMessage; ++shard) {
      v1::ShardUpdate& update = *request.mutable_push()->add_updates();
      update.set_shard(shard);
      update.set_bucket_epoch(2);
      update.set_sequence(sequence);
    }
    loopback.Send(request, {{std::as_bytes(std::span(*values)), values}});
  };
  send();
  for (auto _ : state) {
    send();
    loopback.Receive();
  }
  state.SetBytesProcessed(state.iterations() * kShardsPerMessage * kShardBytes);
}
BENCHMARK(LoopbackPush)->UseRealTime();

void LoopbackFetch(benchmark::State& state) {
  Loopback loopback;
  v1::ExchangeRequest request;
  for (std::uint32_t shard = 0; shard < kShardsPerMessage; ++shard) {
    request.mutable_fetch()->add_shards(shard);
  }
  loopback.Send(request, {});
  for (auto _ : state) {
    loopback.Send(request, {});
    ADAMANT_CHECK(loopback.Receive() == kShardsPerMessage * kShardBytes, "all values come");
  }
  state.SetBytesProcessed(state.iterations() * kShardsPerMessage * kShardBytes);
}
BENCHMARK(LoopbackFetch)->UseRealTime();

}  // namespace
}  // namespace adamant::parameter_server
