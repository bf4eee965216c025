#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/check.h"
#include "services/common/base/clock.h"
#include "services/common/base/rng.h"
#include "services/worker/core/learner/training_thread.h"
#include "services/worker/core/worker.h"
#include "tests/unit/services/worker/core/fake_servers.h"

namespace adamant::worker {

/// A tiny net of two fully connected layers (so that Activations are possible) over 6 bytes.
inline model::Graph TinyGraph() {
  model::Net net;
  net.input = {1, 2, 3};
  net.classes = 3;
  net.layers = {{.name = "fc1",
                 .kind = model::LayerKind::kFullyConnected,
                 .inputs = {"input"},
                 .channels = 5},
                {.name = "tanh", .kind = model::LayerKind::kTanh, .inputs = {"fc1"}},
                {.name = "fc2",
                 .kind = model::LayerKind::kFullyConnected,
                 .inputs = {"tanh"},
                 .channels = 3}};
  auto graph = model::BuildGraph(net);
  ADAMANT_CHECK(graph.ok(), "the net is right");
  return *graph;
}

struct RigOptions {
  std::size_t threads = 1;
  std::uint64_t fetch_every = 4;
  std::uint64_t push_every = 4;
  OptimiserKind kind = OptimiserKind::kMomentum;
  OptimiserLocation location = OptimiserLocation::kWorker;
  double rate = 0.1;
  UpdateProtocol protocol = UpdateProtocol::kGradients;
  std::uint64_t retain_pushes = 0;
  std::uint64_t share_every = 1;
  model::Graph (*graph)() = TinyGraph;
  graph::BackendKind backend = graph::BackendKind::kReference;
};

inline WorkerOptions WorkerOptionsOf(const RigOptions& options) {
  return {.threads = options.threads,
          .fetch_every = options.fetch_every,
          .push_every = options.push_every,
          .share_every = options.share_every,
          .batch_size = 4,
          .prefetch = 8,
          .seed = 1,
          .backend = options.backend};
}

inline UpdatePlan PlanOf(const RigOptions& options,
                         const model::Graph& graph,
                         const ShardLayout& layout) {
  const ParameterOptimiser optimiser = {.kind = options.kind,
                                        .location = options.location,
                                        .rate = options.rate,
                                        .schedule = {},
                                        .momentum = 0.9,
                                        .epsilon = 1e-6,
                                        .weight_decay = 0.01};
  const std::size_t tensors = graph.parameters.size();
  auto plan = UpdatePlan::Make(graph,
                               layout,
                               {.optimisers = std::vector(tensors, optimiser),
                                .protocols = std::vector(tensors, options.protocol),
                                .push_every = options.push_every,
                                .batch_size = 4,
                                .threads = options.threads,
                                .servers = 2,
                                .max_operand_bytes = 1 << 20});
  ADAMANT_CHECK(plan.ok(), "the plan is right");
  return *plan;
}

/// Batch `index`: its bytes and labels depend on the index alone.
inline void FillBatch(std::uint32_t index, Batch& batch) {
  Rng rng(index + 1);
  batch.lease = {.batch = {.kind = WorkKind::kTrain, .epoch = 1, .part = 0, .index = index},
                 .id = index + 1};
  batch.examples = index % 5 == 4 ? 3 : 4;  // some are smaller
  batch.job_examples = std::uint64_t{index} * 4;
  for (std::uint8_t& pixel : batch.pixels) {
    pixel = static_cast<std::uint8_t>(rng.Below(256));
  }
  for (std::int32_t& label : batch.labels) {
    label = static_cast<std::int32_t>(rng.Below(3));
  }
}

/// A learner without its threads.
struct LoneLearner {
  explicit LoneLearner(const RigOptions& options)
      : graph(options.graph()),
        layout(graph.parameters, 4),
        plan(PlanOf(options, graph, layout)),
        learner(WorkerOptionsOf(options), graph, layout, plan, [] {}) {}

  const model::Graph graph;
  const ShardLayout layout;
  const UpdatePlan plan;
  Learner learner;
};

/// A worker without threads: its training threads are advanced, and its messages delivered, when
/// the test says so. Messages to one server stay in order.
class Rig {
 public:
  explicit Rig(
      const RigOptions& options, std::function<void()> wake = [] {})
      : graph(options.graph()),
        layout(graph.parameters, 4),
        plan(PlanOf(options, graph, layout)),
        servers(layout, plan),
        worker(
            {.training = WorkerOptionsOf(options),
             .synchroniser = {.max_message_bytes = 64,
                              .retain_bytes = options.retain_pushes * Accumulator::BytesOf(plan)}},
            graph,
            layout,
            plan,
            std::move(wake)),
        learner(worker.learner()),
        intake(worker.intake()),
        synchroniser(worker.synchroniser()) {
    const auto channels = static_cast<std::size_t>(graph.input[0]);
    ADAMANT_CHECK(intake
                      .SetNormalisation({.mean = std::vector<float>(channels, 128),
                                         .deviation = std::vector<float>(channels, 64)})
                      .ok(),
                  "one for each channel");
    worker.OnPlacement(servers.Placement());
    synchroniser.OnParameterServer(0, true);
    synchroniser.OnParameterServer(1, true);
    intake.OnDataServer(0, true);
  }

  void MakeThreads() {
    for (std::size_t i = 0; i < learner.threads(); ++i) {
      auto thread = TrainingThread::Create(learner, intake, i, clock);
      ADAMANT_CHECK(thread.ok(), "the context fits");
      threads.push_back(*std::move(thread));
    }
  }

  /// Queues the next batch if there is room.
  bool PutBatch() {
    Batch* const batch = intake.TakeSlot();
    if (batch == nullptr) {
      return false;
    }
    FillBatch(next_batch++, *batch);
    intake.Put(batch);
    return true;
  }

  /// Lets the synchroniser work and puts what it sends on the wire.
  absl::Status Pump() {
    const absl::Status status = synchroniser.Advance(now);
    for (Synchroniser::Message& message : synchroniser.TakeMessages()) {
      if (auto* push = std::get_if<PushMessage>(&message)) {
        Send(std::move(*push));
      } else if (auto* fetch = std::get_if<FetchMessage>(&message)) {
        Send(std::move(*fetch));
      } else if (auto* acknowledge = std::get_if<AcknowledgeMessage>(&message)) {
        for (const LeaseResult& result : acknowledge->results) {
          acknowledged.push_back(result.lease);
          if (count_batches) {
            intake.OnAcknowledged({result.lease});
          }
        }
      } else if (auto* flush = std::get_if<FlushMessage>(&message)) {
        ++flush_requests;
        replies.emplace_back(
            [this, reply = servers.Flush(*flush)] { return synchroniser.OnFlushReply(reply); });
      } else if (auto* hand_back = std::get_if<HandBackMessage>(&message)) {
        handed_back.insert(handed_back.end(), hand_back->leases.begin(), hand_back->leases.end());
      }
    }
    return status;
  }

  /// Lets the server handle the oldest message on its wire.
  bool Serve(ServerSlot server) {
    auto& wire = wires[server];
    if (wire.empty()) {
      return false;
    }
    const auto handle = std::move(wire.front());
    wire.pop_front();
    handle();
    return true;
  }

  /// Delivers the oldest reply.
  bool Reply() {
    if (replies.empty()) {
      return false;
    }
    const auto deliver = std::move(replies.front());
    replies.pop_front();
    ADAMANT_CHECK(deliver().ok(), "the fake servers keep the protocol");
    return true;
  }

  /// Everything that can happen without another batch.
  void Settle() {
    for (bool more = true; more;) {
      more = false;
      for (const auto& thread : threads) {
        more |= thread->Advance() == TrainingThread::Progress::kWorked;
      }
      ADAMANT_CHECK(Pump().ok(), "training goes on");
      more |= Serve(0) || Serve(1) || Reply();
      ADAMANT_CHECK(Pump().ok(), "training goes on");
    }
  }

  /// All parameter servers die, and come back with what is on disk; messages are lost.
  void RestartServers() {
    servers.Restart();
    for (const ServerSlot server : {0, 1}) {
      synchroniser.OnParameterServer(server, false);
    }
    wires.clear();
    replies.clear();
    worker.OnPlacement(servers.Placement());
    for (const ServerSlot server : {0, 1}) {
      synchroniser.OnParameterServer(server, true);
    }
  }

  /// Sets the weights before the first step: the first renewal.
  void Begin() {
    MakeThreads();
    Settle();
  }

  [[nodiscard]] std::vector<float> LocalWeights() const {
    const auto weights = learner.weights();
    return {weights.begin(), weights.end()};
  }

 private:
  void Send(PushMessage push) {
    auto payload = std::make_shared<PushPayload>(synchroniser.PayloadOf(push));
    auto& wire = wires[push.server];
    wire.push_back([this, push = std::move(push), payload] {
      replies.emplace_back([this, reply = servers.Apply(push, *payload)] {
        return synchroniser.OnPushReply(reply, now);
      });
    });
  }

  void Send(FetchMessage fetch) {
    auto& wire = wires[fetch.server];
    wire.push_back([this, fetch = std::move(fetch)] {
      std::vector<float> values;
      const FetchReply reply = servers.Fetch(fetch, values);
      replies.emplace_back([this, reply, values = std::move(values)] {
        std::size_t next = 0;
        const auto read = [&](std::span<float> out) {
          std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(next), out.size(), out.begin());
          next += out.size();
          return absl::OkStatus();
        };
        return synchroniser.OnFetchReply(reply, read, now);
      });
    });
  }

 public:
  const model::Graph graph;
  const ShardLayout layout;
  const UpdatePlan plan;
  const SystemClock clock;
  FakeServers servers;
  Worker worker;
  Learner& learner;
  Intake& intake;
  Synchroniser& synchroniser;
  std::vector<std::unique_ptr<TrainingThread>> threads;
  Clock::TimePoint now{};
  std::map<ServerSlot, std::deque<std::function<void()>>> wires;
  std::deque<std::function<absl::Status()>> replies;
  std::vector<Lease> acknowledged;
  std::vector<Lease> handed_back;
  std::uint32_t next_batch = 0;
  bool count_batches = true;  ///< the data server answers
  int flush_requests = 0;
};

}  // namespace adamant::worker
