#include <gtest/gtest.h>

#include <thread>

#include "services/common/kernels/hogwild.h"
#include "tests/unit/services/common/graph/training_fixture.h"

namespace adamant::graph {
namespace {

class HogwildTrainingTest : public testing::TestWithParam<BackendKind> {};

INSTANTIATE_TEST_SUITE_P(Backends,
                         HogwildTrainingTest,
                         testing::Values(BackendKind::kReference, BackendKind::kOneDnn),
                         [](const auto& backend) {
                           return backend.param == BackendKind::kOneDnn ? "OneDnn" : "Reference";
                         });

/// Takes a step on weights that others change meanwhile.
class SharedStep final : public kernels::GradientSink {
 public:
  SharedStep(std::span<float> weights, double start) : weights_(weights), start_(start) {}

  void Take(std::size_t begin, std::span<float> gradient) override {
    kernels::HogwildAxpy(weights_.subspan(begin, gradient.size()), -0.02f, gradient);
  }
  [[nodiscard]] double start() const override { return start_; }

 private:
  const std::span<float> weights_;
  const double start_;
};

TEST_P(HogwildTrainingTest, ThreadsThatShareTheirWeightsStillLearn) {
  const model::Graph graph = Branched();
  for (const std::int64_t batch : {4, 8}) {
    std::vector<float> weights = InitialWeights(graph, 1);
    std::vector<std::unique_ptr<Context>> contexts;
    for (int i = 0; i < 2; ++i) {
      contexts.push_back(MakeContext(graph, batch, GetParam()));
      Rng rng(6);
      FillRandom(*contexts.back(), batch, graph.classes, rng);
    }
    const double before = contexts[0]->Evaluate(batch, weights).loss_sum;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < contexts.size(); ++i) {
      threads.emplace_back([&, i] {
        SharedStep step(weights, 0.5 * static_cast<double>(i));
        for (std::uint64_t seed = 0; seed < 50; ++seed) {
          contexts[i]->Train(batch, weights, step, seed);
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_LT(contexts[0]->Evaluate(batch, weights).loss_sum, 0.7 * before);
  }
}

}  // namespace
}  // namespace adamant::graph
