#include <gtest/gtest.h>

#include <thread>

#include "services/common/kernels/hogwild.h"
#include "tests/unit/services/common/graph/training_fixture.h"

namespace adamant::graph {
namespace {

class HogwildTrainingTest : public testing::TestWithParam<Backend> {};

INSTANTIATE_TEST_SUITE_P(Backends,
                         HogwildTrainingTest,
                         testing::Values(Backend::kReference, Backend::kOneDnn),
                         [](const auto& backend) {
                           return backend.param == Backend::kOneDnn ? "OneDnn" : "Reference";
                         });

TEST_P(HogwildTrainingTest, ThreadsThatShareTheirWeightsStillLearn) {
  const model::Graph graph = Branched();
  std::vector<float> weights = InitialWeights(graph, 1);
  std::vector<std::unique_ptr<Context>> contexts;
  for (int i = 0; i < 2; ++i) {
    contexts.push_back(MakeContext(graph, 8, GetParam()));
    Rng rng(6);
    FillRandom(*contexts.back(), 8, graph.classes, rng);
  }
  const double before = contexts[0]->Evaluate(8, weights).loss_sum;
  std::vector<std::thread> threads;
  for (const std::unique_ptr<Context>& context : contexts) {
    threads.emplace_back([&weights, &context] {
      std::vector<float> gradients(weights.size());
      for (std::uint64_t step = 0; step < 50; ++step) {
        context->Train(8, weights, gradients, step);
        kernels::HogwildAxpy(weights, -0.02f, gradients);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_LT(contexts[0]->Evaluate(8, weights).loss_sum, 0.7 * before);
}

}  // namespace
}  // namespace adamant::graph
