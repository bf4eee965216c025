#include "services/common/job/warm_start_of.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"

namespace adamant::job {
namespace {

constexpr std::uint64_t kOneEpoch = 60'000;

std::unique_ptr<v1::TrainingJob> Job(const std::string& distribution,
                                     const std::string& asynchrony,
                                     int epochs = 10) {
  ParseResult result =
      ParseJob(R"(apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: example}
spec:
  model: {reference: adam-mnist}
  data:
    batchSize: 32
    train:
      digits: {seed: 1, examples: 60000}
    validation:
      digits: {seed: 2, examples: 100}
  optimiser: {rate: 0.1, asynchrony: )" +
                   asynchrony + "}\n  runPolicy: {epochs: " + std::to_string(epochs) +
                   "}\n  distribution: " + distribution + "\n",
               "job.yaml");
  EXPECT_NE(result.job, nullptr);
  return std::move(result.job);
}

std::uint64_t WarmStart(const std::string& distribution,
                        const std::string& asynchrony = "Auto",
                        std::uint64_t examples = kOneEpoch,
                        int epochs = 10) {
  const auto job = Job(distribution, asynchrony, epochs);
  return job == nullptr ? 0 : WarmStartExamples(*job, examples);
}

bool FadesIn(const std::string& distribution, const std::string& asynchrony = "Auto") {
  const auto job = Job(distribution, asynchrony);
  return job != nullptr && FadesInUntrained(*job);
}

TEST(WarmStartOfTest, MoreThanTwoThreadsLetOneWorkerTrainAloneFirst) {
  EXPECT_EQ(WarmStart("{workers: 3}"), 6400U);
  EXPECT_EQ(WarmStart("{workers: 2, threadsPerWorker: 2}"), 6400U);
  EXPECT_EQ(WarmStart("{workers: 2}"), 0U);
  EXPECT_EQ(WarmStart("{workers: 1, threadsPerWorker: 4}"), 0U);
}

TEST(WarmStartOfTest, OfTwoThreadsOneBeginsAloneWhereTheJobIsShort) {
  EXPECT_EQ(WarmStart("{workers: 2}", "Auto", 6'000, 3), 6'400U);
  EXPECT_EQ(WarmStart("{workers: 2}", "Auto", 60'000, 1), 6'400U);
  EXPECT_EQ(WarmStart("{workers: 2}", "Auto", 60'000, 2), 0U);
  EXPECT_EQ(WarmStart("{workers: 2}", "Auto", std::numeric_limits<std::uint64_t>::max(), 1), 0U);
  EXPECT_EQ(WarmStart("{workers: 1, threadsPerWorker: 2}", "Auto", 6'000, 3), 0U);
  EXPECT_EQ(WarmStart("{workers: 2}", "Off", 6'000, 3), 0U);
  EXPECT_EQ(WarmStart("{workers: 2, warmStart: {examples: 0}}", "Auto", 6'000, 3), 0U);
}

TEST(WarmStartOfTest, IsNoShorterWhereAnEpochOrTheJobIs) {
  EXPECT_EQ(WarmStart("{workers: 3}", "Auto", 1000, 10), 6400U);
  EXPECT_EQ(WarmStart("{workers: 3}", "Auto", 1000, 1), 6400U);
}

TEST(WarmStartOfTest, ThereIsNoneWithoutCorrectionUnlessItIsWritten) {
  EXPECT_EQ(WarmStart("{workers: 3}", "Off"), 0U);
  EXPECT_EQ(WarmStart("{workers: 3, warmStart: {examples: 64}}", "Off"), 64U);
  EXPECT_EQ(WarmStart("{workers: 3, warmStart: {examples: 0}}"), 0U);
}

TEST(FadesInUntrainedTest, OnlyWhereManyThreadsAreWrittenToBeginTogether) {
  EXPECT_TRUE(FadesIn("{workers: 8, warmStart: {examples: 0}}"));
  EXPECT_TRUE(FadesIn("{workers: 2, threadsPerWorker: 2, warmStart: {examples: 0}}"));
  EXPECT_FALSE(FadesIn("{workers: 8}"));
  EXPECT_FALSE(FadesIn("{workers: 8, warmStart: {examples: 64}}"));
  EXPECT_FALSE(FadesIn("{workers: 2, warmStart: {examples: 0}}"));
  EXPECT_FALSE(FadesIn("{workers: 1, threadsPerWorker: 4, warmStart: {examples: 0}}"));
  EXPECT_FALSE(FadesIn("{workers: 8, warmStart: {examples: 0}}", "Off")) << "none fades in";
}

}  // namespace
}  // namespace adamant::job
