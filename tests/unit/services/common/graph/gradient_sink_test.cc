// What a context gives to a GradientSink, and what the sink may do meanwhile.

#include "services/common/kernels/gradient_sink.h"

#include <limits>

#include "services/common/kernels/hogwild.h"
#include "tests/unit/services/common/graph/training_fixture.h"

namespace adamant::graph {
namespace {

/// A power of two, so that rounding does not depend on where the pieces are cut.
constexpr float kRate = 0.125f;

/// Counts how often each parameter comes and spoils what it is given; `rate` is of the step that it
/// takes on the weights.
class SpoilingSink final : public kernels::GradientSink {
 public:
  SpoilingSink(std::span<float> weights, float rate, double start)
      : gradients(weights.size()),
        times(weights.size()),
        weights_(weights),
        rate_(rate),
        start_(start) {}

  void Take(std::size_t begin, std::span<float> gradient) override {
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      gradients[begin + i] = gradient[i];
      ++times[begin + i];
    }
    kernels::HogwildAxpy(weights_.subspan(begin, gradient.size()), -rate_, gradient);
    std::ranges::fill(gradient, std::numeric_limits<float>::quiet_NaN());
  }

  [[nodiscard]] double start() const override { return start_; }

  std::vector<float> gradients;
  std::vector<int> times;

 private:
  const std::span<float> weights_;
  const float rate_;
  const double start_;
};

class GradientSinkTest : public testing::TestWithParam<BackendKind> {};

INSTANTIATE_TEST_SUITE_P(Backends,
                         GradientSinkTest,
                         testing::Values(BackendKind::kReference, BackendKind::kOneDnn),
                         [](const auto& backend) {
                           return backend.param == BackendKind::kOneDnn ? "OneDnn" : "Reference";
                         });

TEST_P(GradientSinkTest, EveryParameterComesOnceWithTheGradientOfUnchangedWeights) {
  for (const model::Graph& graph : {Branched(), ReferenceGraph("adam-mnist")}) {
    for (const std::int64_t batch : {1, 7, 32}) {
      for (const double start : {0.0, 0.5, 0.99}) {
        auto context = MakeContext(graph, batch, GetParam());
        Rng rng(17);
        FillRandom(*context, batch, graph.classes, rng);
        std::vector<float> weights = InitialWeights(graph, 3);
        SpoilingSink still(weights, 0, start);
        context->Train(batch, weights, still, 5);
        std::vector<float> stepped = weights;
        kernels::HogwildAxpy(stepped, -kRate, still.gradients);
        SpoilingSink sink(weights, kRate, start);
        context->Train(batch, weights, sink, 5);
        EXPECT_EQ(sink.times, std::vector<int>(weights.size(), 1));
        EXPECT_EQ(sink.gradients, still.gradients);
        EXPECT_EQ(weights, stepped);
      }
    }
  }
}

}  // namespace
}  // namespace adamant::graph
