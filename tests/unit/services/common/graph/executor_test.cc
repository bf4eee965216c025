#include "services/common/graph/executor.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/unit/services/common/graph/training_fixture.h"

namespace adamant::graph {
namespace {

constexpr std::int64_t kExamples = 5;

class CollectingSink final : public kernels::GradientSink {
 public:
  explicit CollectingSink(std::size_t parameters) : gradients(parameters) {}

  void Take(std::size_t begin, std::span<float> gradient) override {
    std::ranges::copy(gradient, gradients.begin() + static_cast<std::ptrdiff_t>(begin));
  }

  std::vector<float> gradients;
};

Executor MakeExecutor(const model::Graph& graph, bool training) {
  auto executor = Executor::Create(graph, kExamples, kernels::MakeReferenceBackend(), training);
  EXPECT_TRUE(executor.ok()) << executor.status();
  Rng rng(1);
  for (float& value : executor->input()) {
    value = static_cast<float>(rng.Normal());
  }
  return *std::move(executor);
}

std::vector<float> Copy(std::span<const float> values) { return {values.begin(), values.end()}; }

TEST(ExecutorTest, HasErrorsOnlyForTraining) {
  const model::Graph graph = Branched();
  const Executor training = MakeExecutor(graph, true);
  EXPECT_EQ(training.input().size(), static_cast<std::size_t>(kExamples * 3 * 9 * 7));
  EXPECT_EQ(training.logits().size(), static_cast<std::size_t>(kExamples * 4));
  EXPECT_EQ(training.loss_error().size(), training.logits().size());
  EXPECT_EQ(training.parameter_floats(), InitialWeights(graph, 1).size());
  const Executor evaluating = MakeExecutor(graph, false);
  EXPECT_TRUE(evaluating.loss_error().empty());
  EXPECT_LT(evaluating.memory_bytes(), training.memory_bytes());
}

TEST(ExecutorTest, BackwardBeginsWithTheErrorOfTheLogits) {
  const model::Graph graph = Branched(0);
  const std::vector<float> weights = InitialWeights(graph, 1);
  Executor executor = MakeExecutor(graph, true);
  const auto gradients = [&](float error) {
    CollectingSink sink(weights.size());
    executor.Forward(weights);
    std::ranges::fill(executor.loss_error(), error);
    executor.Backward(sink);
    return sink.gradients;
  };
  const std::vector<float> once = gradients(1);
  EXPECT_NE(std::ranges::count(once, 0.0f), static_cast<std::ptrdiff_t>(once.size()));
  const std::vector<float> twice = gradients(2);
  for (std::size_t i = 0; i < once.size(); ++i) {
    ASSERT_EQ(twice[i], 2 * once[i]) << i;
  }
}

TEST(ExecutorTest, DropsWhatTheSeedSays) {
  const model::Graph graph = Branched();
  const std::vector<float> weights = InitialWeights(graph, 1);
  Executor executor = MakeExecutor(graph, true);
  const auto logits = [&] {
    executor.Forward(weights);
    return Copy(executor.logits());
  };
  const std::vector<float> whole = logits();
  executor.SetDropout(7);
  const std::vector<float> dropped = logits();
  EXPECT_NE(dropped, whole);
  executor.SetDropout(8);
  EXPECT_NE(logits(), dropped);
  executor.SetDropout(7);
  EXPECT_EQ(logits(), dropped);
  executor.ClearDropout();
  EXPECT_EQ(logits(), whole);
}

TEST(ExecutorTest, TimingChangesNoNumbers) {
  const model::Graph graph = Branched();
  const std::vector<float> weights = InitialWeights(graph, 1);
  Executor executor = MakeExecutor(graph, true);
  CollectingSink plain(weights.size());
  executor.Forward(weights);
  const std::vector<float> logits = Copy(executor.logits());
  std::ranges::fill(executor.loss_error(), 1.0f);
  executor.Backward(plain);

  CollectingSink timed(weights.size());
  std::vector<double> seconds(executor.Nodes().size());
  executor.TimeForward(weights, seconds);
  EXPECT_EQ(Copy(executor.logits()), logits);
  EXPECT_GT(seconds.back(), 0);
  const std::vector<double> forward = seconds;
  std::ranges::fill(executor.loss_error(), 1.0f);
  executor.TimeBackward(timed, seconds);
  EXPECT_EQ(timed.gradients, plain.gradients);
  EXPECT_GT(seconds.back(), forward.back());
}

}  // namespace
}  // namespace adamant::graph
