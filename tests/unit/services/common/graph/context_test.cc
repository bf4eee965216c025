#include "services/common/graph/context.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "services/common/kernels/hogwild.h"
#include "tests/unit/services/common/graph/training_fixture.h"

namespace adamant::graph {
namespace {

using model::Layer;
using model::LayerKind;

/// Logits that are maps of 5x1x1, straight from a convolution.
model::Graph FullyConvolutional() {
  Layer conv = MakeLayer("conv", LayerKind::kConv2d, {"input"});
  conv.channels = 5;
  conv.kernel = {4, 6};
  auto graph = model::BuildGraph({{3, 4, 6}, 5, {conv}, ""});
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

double Largest(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::abs(double{value}));
  }
  return largest;
}

class BothBackends : public testing::TestWithParam<BackendKind> {};

INSTANTIATE_TEST_SUITE_P(ContextTest,
                         BothBackends,
                         testing::Values(BackendKind::kReference, BackendKind::kOneDnn),
                         [](const auto& backend) {
                           return backend.param == BackendKind::kOneDnn ? "OneDnn" : "Reference";
                         });

TEST(ContextTest, BackendsAgreeOnEveryKindOfLayer) {
  for (const model::Graph& graph :
       {Branched(), FullyConvolutional(), ReferenceGraph("adam-mnist")}) {
    // Up to 4, and with the batch innermost: two whole blocks, and a part of one.
    const std::pair<std::int64_t, std::int64_t> sizes[] = {
        {4, 1}, {4, 3}, {4, 4}, {32, 32}, {32, 5}, {37, 37}, {37, 20}};
    for (const auto& [max_batch, batch] : sizes) {
      SCOPED_TRACE(std::to_string(batch) + " of " + std::to_string(max_batch));
      const std::vector<float> weights = InitialWeights(graph, 3);
      std::vector<float> gradients[2];
      StepResult results[2];
      double loss[2];
      for (const BackendKind backend : {BackendKind::kReference, BackendKind::kOneDnn}) {
        const int i = backend == BackendKind::kOneDnn ? 1 : 0;
        auto context = MakeContext(graph, max_batch, backend);
        Rng rng(17);
        FillRandom(*context, batch, graph.classes, rng);
        gradients[i].assign(weights.size(), std::numeric_limits<float>::quiet_NaN());
        results[i] = context->Train(batch, weights, gradients[i], 5);
        loss[i] = context->Evaluate(batch, weights).loss_sum;
      }
      EXPECT_NEAR(
          results[0].loss_sum, results[1].loss_sum, 1e-5 * static_cast<double>(batch) + 1e-4);
      EXPECT_NEAR(loss[0], loss[1], 1e-5 * static_cast<double>(batch) + 1e-4);
      EXPECT_EQ(results[0].correct, results[1].correct);
      const double scale = Largest(gradients[0]);
      ASSERT_GT(scale, 0);
      for (std::size_t k = 0; k < weights.size(); ++k) {
        ASSERT_NEAR(gradients[0][k], gradients[1][k], 1e-5 * scale + 1e-6) << "parameter " << k;
      }
    }
  }
}

TEST_P(BothBackends, GradientsOfABranchedNetMatchDifferencesOfTheLoss) {
  const model::Graph graph = Branched(/*dropout_rate=*/0);
  auto context = MakeContext(graph, 3, GetParam());
  Rng rng(11);
  FillRandom(*context, 3, graph.classes, rng);
  std::vector<float> weights = InitialWeights(graph, 5);
  std::vector<float> gradients(weights.size());
  context->Train(3, weights, gradients, 0);
  // Along one random direction all parameters count, and the sum is far above rounding.
  std::vector<float> direction(weights.size());
  double slope = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    direction[k] = static_cast<float>(rng.Normal());
    slope += double{direction[k]} * gradients[k];
  }
  constexpr float kStep = 1e-3f;
  const auto loss_at = [&](float distance) {
    std::vector<float> moved = weights;
    kernels::HogwildAxpy(moved, distance, direction);
    return context->Evaluate(3, moved).loss_sum / 3;
  };
  const double difference = (loss_at(kStep) - loss_at(-kStep)) / (2 * double{kStep});
  EXPECT_NEAR(difference, slope, 0.01 * std::abs(slope) + 1e-3);
}

TEST_P(BothBackends, APartialBatchEqualsAContextOfThatSize) {
  const model::Graph graph = Branched();
  const std::vector<float> weights = InitialWeights(graph, 3);
  std::vector<float> partial(weights.size());
  std::vector<float> exact(weights.size());
  auto large = MakeContext(graph, 8, GetParam());
  auto small = MakeContext(graph, 3, GetParam());
  Rng noise(1);
  FillRandom(*large, 8, graph.classes, noise);
  large->Train(8, weights, partial, 9);  // leaves its traces in the rows that the next step lacks
  Rng a(2);
  Rng b(2);
  FillRandom(*large, 3, graph.classes, a);
  FillRandom(*small, 3, graph.classes, b);
  const StepResult of_large = large->Train(3, weights, partial, 9);
  const StepResult of_small = small->Train(3, weights, exact, 9);
  EXPECT_NEAR(of_large.loss_sum, of_small.loss_sum, 1e-5);
  EXPECT_EQ(of_large.correct, of_small.correct);
  const double scale = Largest(exact);
  for (std::size_t k = 0; k < weights.size(); ++k) {
    ASSERT_NEAR(partial[k], exact[k], 1e-5 * scale) << "parameter " << k;
  }
}

TEST_P(BothBackends, RowsBeyondTheBatchDoNotCountWhateverTheyHold) {
  const model::Graph graph = ReferenceGraph("adam-mnist");
  const std::vector<float> weights = InitialWeights(graph, 3);
  std::vector<float> gradients(weights.size());
  auto context = MakeContext(graph, 4, GetParam());
  Rng rng(1);
  FillRandom(*context, 4, graph.classes, rng);
  std::fill(context->input().begin() + std::ptrdiff_t{2} * 784,
            context->input().end(),
            std::numeric_limits<float>::infinity());
  const StepResult result = context->Train(2, weights, gradients, 0);
  EXPECT_TRUE(std::isfinite(result.loss_sum));
  EXPECT_THAT(gradients, testing::Each(testing::Truly([](float g) { return std::isfinite(g); })));
}

TEST_P(BothBackends, EqualStepsGiveEqualBits) {
  const model::Graph graph = ReferenceGraph("adam-mnist");
  std::vector<float> ends[2];
  for (std::vector<float>& weights : ends) {
    auto context = MakeContext(graph, 4, GetParam());
    weights = InitialWeights(graph, 3);
    std::vector<float> gradients(weights.size());
    Rng rng(1);
    for (int step = 0; step < 5; ++step) {
      FillRandom(*context, 4, graph.classes, rng);
      context->Train(4, weights, gradients, static_cast<std::uint64_t>(step));
      kernels::HogwildAxpy(weights, -0.1f, gradients);
    }
  }
  EXPECT_EQ(ends[0], ends[1]);
}

TEST_P(BothBackends, AdamMnistLearnsBrightPlaces) {
  const model::Graph graph = ReferenceGraph("adam-mnist");
  constexpr std::int64_t kBatch = 8;
  auto context = MakeContext(graph, kBatch, GetParam());
  std::vector<float> weights = InitialWeights(graph, 1);
  std::vector<float> gradients(weights.size());
  Rng rng(4);
  const auto fill = [&] {
    for (std::int64_t n = 0; n < kBatch; ++n) {
      const auto label = static_cast<std::int32_t>(rng.Below(10));
      context->labels()[n] = label;
      for (int at = 0; at < 784; ++at) {
        const bool bright = at / 28 / 14 == label / 5 && at % 28 / 5 == label % 5;
        context->input()[n * 784 + at] = static_cast<float>((bright ? 1 : 0) + 0.1 * rng.Normal());
      }
    }
  };
  for (int step = 0; step < 60; ++step) {
    fill();
    context->Train(kBatch, weights, gradients, 0);
    kernels::HogwildAxpy(weights, -0.05f, gradients);
  }
  std::int64_t correct = 0;
  for (int step = 0; step < 5; ++step) {
    fill();
    correct += context->Evaluate(kBatch, weights).correct;
  }
  EXPECT_GE(correct, 5 * kBatch - 1);
}

TEST_P(BothBackends, OperandsMultiplyToTheGradient) {
  const model::Graph graph = ReferenceGraph("adam-mnist");
  const ShardLayout layout(graph.parameters, 1);
  auto context = MakeContext(graph, 4, GetParam());
  const std::vector<float> weights = InitialWeights(graph, 2);
  std::vector<float> gradients(weights.size());
  Rng rng(1);
  FillRandom(*context, 3, graph.classes, rng);
  context->Train(3, weights, gradients, 0);
  for (const int parameter : {4, 6, 8}) {
    const std::int64_t out = graph.parameters[parameter].shape[0];
    const std::int64_t in = graph.parameters[parameter].shape[1];
    const FullyConnectedOperands operands = context->OperandsOf(parameter);
    ASSERT_EQ(operands.activations.size(), static_cast<std::size_t>(3 * in));
    ASSERT_EQ(operands.errors.size(), static_cast<std::size_t>(3 * out));
    const float* gradient = gradients.data() + layout.OffsetOf(parameter);
    for (std::int64_t j = 0; j < out; ++j) {
      for (std::int64_t i = 0; i < in; ++i) {
        float sum = 0;
        for (std::int64_t n = 0; n < 3; ++n) {
          sum += operands.errors[n * out + j] * operands.activations[n * in + i];
        }
        ASSERT_NEAR(gradient[j * in + i], sum, 1e-5);
      }
    }
  }
}

TEST_P(BothBackends, DropoutFollowsItsSeedAndRestsInEvaluation) {
  const model::Graph graph = Branched(/*dropout_rate=*/0.5);
  auto context = MakeContext(graph, 4, GetParam());
  const std::vector<float> weights = InitialWeights(graph, 2);
  std::vector<float> a(weights.size()), b(weights.size()), c(weights.size());
  Rng rng(1);
  FillRandom(*context, 4, graph.classes, rng);
  context->Train(4, weights, a, 1);
  const StepResult first = context->Evaluate(4, weights);
  context->Train(4, weights, b, 2);
  const StepResult second = context->Evaluate(4, weights);
  context->Train(4, weights, c, 1);
  EXPECT_NE(a, b);
  EXPECT_EQ(a, c);
  EXPECT_EQ(first.loss_sum, second.loss_sum);
}

TEST_P(BothBackends, AnEvaluationContextGivesTheSameLossAndLogits) {
  const model::Graph graph = ReferenceGraph("adam-mnist");
  const std::vector<float> weights = InitialWeights(graph, 2);
  StepResult results[2];
  std::vector<float> logits[2];
  for (const bool training : {false, true}) {
    auto context = MakeContext(graph, 4, GetParam(), training);
    Rng rng(1);
    FillRandom(*context, 4, graph.classes, rng);
    const int i = training ? 1 : 0;
    results[i] = context->Evaluate(4, weights);
    logits[i].assign(context->logits().begin(), context->logits().end());
    const auto best = std::max_element(logits[i].begin(), logits[i].begin() + 10);
    context->labels()[0] = static_cast<std::int32_t>(best - logits[i].begin());
    EXPECT_EQ(context->Evaluate(1, weights).correct, 1);
  }
  ASSERT_EQ(logits[0].size(), 40u);
  for (std::size_t k = 0; k < 40; ++k) {
    EXPECT_NEAR(logits[0][k], logits[1][k], 1e-5);
  }
  EXPECT_EQ(results[0].correct, results[1].correct);
  EXPECT_NEAR(results[0].loss_sum, results[1].loss_sum, 1e-5);
}

TEST(ContextTest, TheListOfKernelsNamesEveryLayerOnceInOrder) {
  auto context = Context::Create(
      *model::BuildGraph(*model::ReferenceNet("adam-mnist")), 32, BackendKind::kReference, true);
  ASSERT_TRUE(context.ok()) << context.status();
  const std::vector<NodeProfile> nodes = (*context)->Nodes();
  const std::string list = KernelList(nodes);
  std::size_t last = 0;
  for (const char* layer : {"conv1: ", "pool1", "conv2: ", "pool2", "fc1: "}) {
    const std::size_t at = list.find(layer);
    ASSERT_NE(at, std::string::npos) << layer << " in " << list;
    EXPECT_GE(at, last) << list;
    last = at;
  }
  EXPECT_EQ(std::ranges::count(list, ';') + 1, nodes.size()) << list;
  EXPECT_NE(list.find("reference (channels first)"), std::string::npos) << list;
}

struct Ignore final : kernels::GradientSink {
  void Take(std::size_t /*begin*/, std::span<float> /*gradient*/) override {}
};

TEST(ContextTest, AProfileTakesAsManyStepsAsItMayAndOneAtLeast) {
  const model::Graph graph = ReferenceGraph("adam-mnist");
  auto context = MakeContext(graph, 2, BackendKind::kReference);
  const std::vector<float> weights = InitialWeights(graph, 2);
  Ignore sink;
  std::vector<int> told;
  const auto on_step = [&told](int done) { told.push_back(done); };
  context->Profile({.steps = 3, .on_step = on_step}, weights, sink);
  EXPECT_THAT(told, testing::ElementsAre(1, 2, 3));
  told.clear();
  context->Profile({.steps = 3, .seconds = 0, .on_step = on_step}, weights, sink);
  EXPECT_THAT(told, testing::ElementsAre(1));
}

TEST(ContextTest, SizesOutsideTheLimitsAreRefused) {
  const model::Graph graph = ReferenceGraph("adam-mnist");
  for (const std::int64_t batch : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 21}) {
    EXPECT_EQ(Context::Create(graph, batch, BackendKind::kReference, true).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  Layer out = MakeLayer("out", LayerKind::kFullyConnected, {"input"});
  out.channels = 2;
  const auto huge = model::BuildGraph({{1 << 10, 1 << 12, 1 << 12}, 2, {out}, ""});
  ASSERT_TRUE(huge.ok()) << huge.status();
  EXPECT_EQ(Context::Create(*huge, 1 << 10, BackendKind::kReference, true).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(ContextTest, TrainingStartsNoThreads) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = threads();
  const model::Graph graph = ReferenceGraph("adam-mnist");
  auto context = MakeContext(graph, 64, BackendKind::kOneDnn);
  const std::vector<float> weights = InitialWeights(graph, 2);
  std::vector<float> gradients(weights.size());
  context->Train(64, weights, gradients, 0);
  EXPECT_EQ(threads(), before);
}

}  // namespace
}  // namespace adamant::graph
