#include "services/common/job/optimiser_of.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"

namespace adamant::job {
namespace {

constexpr std::uint64_t kExamples = 1000;

/// A job on adam-mnist with this optimiser section.
v1::TrainingJob JobWith(const std::string& optimiser) {
  const ParseResult result = ParseJob(R"(apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: example}
spec:
  model: {reference: adam-mnist}
  data:
    train:
      digits: {seed: 1, examples: 1000}
    validation:
      digits: {seed: 2, examples: 100}
  runPolicy: {epochs: 4}
  optimiser: )" + optimiser + "\n",
                                      "job.yaml");
  EXPECT_NE(result.job, nullptr);
  return result.job == nullptr ? v1::TrainingJob() : *result.job;
}

std::vector<Parameter> Parameters() {
  return {{.name = "conv1.weight", .layer = "conv1", .shape = {10}, .decays = true},
          {.name = "conv1.bias", .layer = "conv1", .shape = {10}, .decays = false},
          {.name = "fc1.weight", .layer = "fc1", .shape = {10}, .decays = true}};
}

TEST(OptimiserOfTest, LayersOverrideTheJobsValuesAndBiasesDoNotDecay) {
  const v1::TrainingJob job = JobWith(
      "{rate: 0.5, weightDecay: 0.01, layers: [{layer: conv1, rate: 0.25}, {layer: fc1, "
      "weightDecay: 0}]}");
  const auto optimisers = OptimisersOf(job, Parameters());
  ASSERT_TRUE(optimisers.ok()) << optimisers.status();
  ASSERT_EQ(optimisers->size(), 3U);
  EXPECT_EQ((*optimisers)[0].rate, 0.25);
  EXPECT_EQ((*optimisers)[0].weight_decay, 0.01);
  EXPECT_EQ((*optimisers)[1].rate, 0.25);
  EXPECT_EQ((*optimisers)[1].weight_decay, 0);
  EXPECT_EQ((*optimisers)[2].rate, 0.5);
  EXPECT_EQ((*optimisers)[2].weight_decay, 0);
  EXPECT_EQ((*optimisers)[2].momentum, 0.9);
}

TEST(OptimiserOfTest, EpochsAreCountedInExamplesOnceTheDataIsKnown) {
  v1::TrainingJob job =
      JobWith("{rate: 1, schedule: {kind: Step, decay: 0.5, every: {epochs: 1.5}}}");
  EXPECT_EQ(OptimisersOf(job, Parameters()).status().code(), absl::StatusCode::kFailedPrecondition);
  CountProgressInExamples(kExamples, 0, job);
  const auto optimisers = OptimisersOf(job, Parameters());
  ASSERT_TRUE(optimisers.ok()) << optimisers.status();
  EXPECT_EQ((*optimisers)[0].RateAt(1499), 1);
  EXPECT_EQ((*optimisers)[0].RateAt(1500), 0.5);
}

TEST(OptimiserOfTest, ALinearScheduleWithoutAnEndEndsWithTheJob) {
  v1::TrainingJob job = JobWith("{rate: 1, schedule: {kind: Linear}}");
  CountProgressInExamples(kExamples, 0, job);
  const auto optimisers = OptimisersOf(job, Parameters());
  ASSERT_TRUE(optimisers.ok()) << optimisers.status();
  EXPECT_EQ((*optimisers)[0].RateAt(0), 1);
  EXPECT_DOUBLE_EQ((*optimisers)[0].RateAt(2 * kExamples), 0.5);
  EXPECT_EQ((*optimisers)[0].RateAt(4 * kExamples), 0);
}

TEST(OptimiserOfTest, ALinearScheduleWithoutAnEndGoesOverTheEpochsThatTheJobWasStartedWith) {
  v1::TrainingJob job = JobWith("{rate: 1, schedule: {kind: Linear}}");
  CountProgressInExamples(kExamples, 8, job);
  const auto optimisers = OptimisersOf(job, Parameters());
  ASSERT_TRUE(optimisers.ok()) << optimisers.status();
  EXPECT_DOUBLE_EQ((*optimisers)[0].RateAt(4 * kExamples), 0.5);
}

}  // namespace
}  // namespace adamant::job
