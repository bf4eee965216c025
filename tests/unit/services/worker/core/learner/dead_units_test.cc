#include "services/worker/core/learner/dead_units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kWindowSteps = DeadUnitSampler::kSampleEvery * DeadUnitSampler::kWindow;
constexpr std::uint64_t kBegin = 10;  // of the biases of fc1

/// Counts what it takes, and overwrites it.
class Counter final : public kernels::GradientSink {
 public:
  void Take(std::size_t /*begin*/, std::span<float> gradient) override {
    taken += gradient.size();
    std::ranges::fill(gradient, 7.0f);
  }
  [[nodiscard]] double start() const override { return 0.25; }

  std::size_t taken = 0;
};

class DeadUnitsTest : public testing::Test {
 protected:
  // Steps of `thread`, all with the same gradient from `begin` on.
  void Step(DeadUnitSampler& thread,
            std::uint64_t steps,
            const std::vector<float>& gradient,
            std::size_t begin = kBegin) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      std::vector<float> values = gradient;
      thread.Begin().Take(begin, values);
      thread.End();
    }
  }

  DeadUnitBoard board_{{{.name = "fc1", .begin = kBegin, .units = 3}}, 2};
  Counter next_;
  DeadUnitSampler first_{board_, 0, next_};
  DeadUnitSampler second_{board_, 1, next_};
};

TEST_F(DeadUnitsTest, UnitsWithoutGradientInAWholeWindowAreDead) {
  Step(first_, kWindowSteps, {0.0f, 1e-30f, -0.0f});
  EXPECT_THAT(board_.Read(), ElementsAre(DeadUnits{.layer = "fc1", .units = 3, .dead = 2}));
}

TEST_F(DeadUnitsTest, OneSampleShowsThatAUnitIsAlive) {
  Step(first_, DeadUnitSampler::kSampleEvery, {0, 0, -1});
  Step(first_, DeadUnitSampler::kSampleEvery, {NAN, 0, 0});
  Step(first_, kWindowSteps - 2 * DeadUnitSampler::kSampleEvery, {0, 0, 0});
  EXPECT_THAT(board_.Read(), ElementsAre(DeadUnits{.layer = "fc1", .units = 3, .dead = 1}));
}

TEST_F(DeadUnitsTest, NothingIsSaidBeforeAWindowIsFullAndEachBeginsAnew) {
  Step(first_, kWindowSteps - 1, {1, 1, 1});
  EXPECT_THAT(board_.Read(), IsEmpty());
  Step(first_, 1, {1, 1, 1});
  EXPECT_THAT(board_.Read(), ElementsAre(DeadUnits{.layer = "fc1", .units = 3, .dead = 0}));
  Step(first_, kWindowSteps, {0, 0, 0});
  EXPECT_THAT(board_.Read(), ElementsAre(DeadUnits{.layer = "fc1", .units = 3, .dead = 3}));
}

TEST_F(DeadUnitsTest, PiecesAndOtherTensorsAreToldApart) {
  for (std::uint64_t i = 0; i < kWindowSteps; ++i) {
    std::vector<float> other = {1, 1, 1};
    std::vector<float> head = {0, 1};
    std::vector<float> tail = {0};
    kernels::GradientSink& sink = first_.Begin();
    sink.Take(0, other);
    sink.Take(kBegin, head);
    sink.Take(kBegin + 2, tail);
    sink.Take(kBegin + 3, other);
    first_.End();
  }
  EXPECT_THAT(board_.Read(), ElementsAre(DeadUnits{.layer = "fc1", .units = 3, .dead = 2}));
  EXPECT_EQ(next_.taken, kWindowSteps * 9) << "what is watched is passed on";
  EXPECT_EQ(first_.start(), next_.start());
}

TEST_F(DeadUnitsTest, TheFewestOfThreadsWithAFullWindowCount) {
  Step(first_, kWindowSteps, {0, 0, 1});
  Step(second_, kWindowSteps - 1, {0, 1, 1});
  EXPECT_THAT(board_.Read(), ElementsAre(DeadUnits{.layer = "fc1", .units = 3, .dead = 2}));
  Step(second_, 1, {0, 1, 1});
  EXPECT_THAT(board_.Read(), ElementsAre(DeadUnits{.layer = "fc1", .units = 3, .dead = 1}));
}

/// Two hidden layers of 5 and 4 units.
model::Graph ReluGraph() {
  using model::LayerKind;
  model::Net net;
  net.input = {1, 2, 3};
  net.classes = 3;
  net.layers = {
      {.name = "fc1", .kind = LayerKind::kFullyConnected, .inputs = {"input"}, .channels = 5},
      {.name = "relu1", .kind = LayerKind::kRelu, .inputs = {"fc1"}},
      {.name = "fc2", .kind = LayerKind::kFullyConnected, .inputs = {"relu1"}, .channels = 4},
      {.name = "relu2", .kind = LayerKind::kRelu, .inputs = {"fc2"}},
      {.name = "fc3", .kind = LayerKind::kFullyConnected, .inputs = {"relu2"}, .channels = 3}};
  auto graph = model::BuildGraph(net);
  ADAMANT_CHECK(graph.ok(), "the net is right");
  return *graph;
}

TEST(WatchedLayersTest, AreThoseHiddenOnesThatAreTrained) {
  const model::Graph graph = ReluGraph();
  const ShardLayout layout(graph.parameters, 4);
  UpdatePlan plan = PlanOf({}, graph, layout);
  std::vector<WatchedLayer> layers = WatchedLayersOf(graph, plan);
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].name, "fc1");
  EXPECT_EQ(layers[0].begin, 30u);
  EXPECT_EQ(layers[0].units, 5u);
  EXPECT_EQ(layers[1].name, "fc2");
  EXPECT_EQ(layers[1].begin, 55u);
  EXPECT_EQ(layers[1].units, 4u);
  plan.tensors[1].trained = false;
  layers = WatchedLayersOf(graph, plan);
  ASSERT_EQ(layers.size(), 1u);
  EXPECT_EQ(layers[0].name, "fc2");
}

// Through a worker's training thread, also where rows are pushed instead of gradients.
void ExpectThatADeadLayerIsFound(RigOptions options) {
  options.rate = 0.001;
  options.graph = ReluGraph;
  Rig rig(options);
  const auto set_biases = [&](std::size_t layer, float value) {
    const WatchedLayer& watched = rig.learner.dead_units().layers()[layer];
    std::ranges::fill(std::span(rig.servers.weights()).subspan(watched.begin, watched.units),
                      value);
  };
  set_biases(0, -1e6f);
  set_biases(1, 1.0f);  // for their inputs are all 0
  rig.Begin();
  for (std::uint64_t step = 0; step < kWindowSteps; ++step) {
    EXPECT_THAT(rig.learner.dead_units().Read(), IsEmpty());
    ASSERT_TRUE(rig.PutBatch());
    rig.Settle();
  }
  ASSERT_EQ(rig.learner.steps(), kWindowSteps);
  EXPECT_THAT(rig.learner.dead_units().Read(),
              ElementsAre(DeadUnits{.layer = "fc1", .units = 5, .dead = 5},
                          DeadUnits{.layer = "fc2", .units = 4, .dead = 0}));
}

TEST(DeadUnitsOfANetTest, ALayerThatAReluShutsOffIsFound) {
  ExpectThatADeadLayerIsFound({});
  ExpectThatADeadLayerIsFound(
      {.location = OptimiserLocation::kServer, .protocol = UpdateProtocol::kActivations});
}

}  // namespace
}  // namespace adamant::worker
