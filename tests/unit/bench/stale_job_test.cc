#include "tests/bench/stale/stale_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "services/common/dataset/digits.h"

namespace adamant::bench {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kExamples = 2048;

const dataset::Dataset& TrainingDigits() {
  static const dataset::Dataset kDigits =
      dataset::GenerateDigits({.seed = 1, .examples = kExamples, .threads = 1});
  return kDigits;
}

const dataset::Dataset& TestDigits() {
  static const dataset::Dataset kDigits =
      dataset::GenerateDigits({.seed = 2, .examples = 1000, .threads = 1});
  return kDigits;
}

model::Graph SmallGraph() {
  model::Net net;
  net.input = {1, 28, 28};
  net.classes = 10;
  net.layers = {{.name = "conv", .kind = model::LayerKind::kConv2d, .inputs = {"input"}},
                {.name = "pool", .kind = model::LayerKind::kMaxPool, .inputs = {"conv"}},
                {.name = "relu", .kind = model::LayerKind::kRelu, .inputs = {"pool"}},
                {.name = "full", .kind = model::LayerKind::kFullyConnected, .inputs = {"relu"}}};
  net.layers[0].channels = 4;
  net.layers[0].kernel = {5, 5};
  net.layers[1].kernel = net.layers[1].stride = {4, 4};
  net.layers[3].channels = 10;
  return *model::BuildGraph(net);
}

/// A quick job: 128 batches.
StaleOptions Quick(std::uint32_t workers) {
  return {.workers = workers, .batch = 16, .rate = 0.01, .epochs = 1};
}

struct Outcome {
  absl::Status status;
  std::string text;
  std::vector<nlohmann::json> lines = {};

  [[nodiscard]] const nlohmann::json& last() const { return lines.back(); }
};

Outcome RunJob(const StaleOptions& options) {
  StaleJob job(options, SmallGraph(), TrainingDigits(), TestDigits());
  std::ostringstream text;
  Outcome outcome = {.status = job.Run(text), .text = text.str()};
  std::istringstream lines(outcome.text);
  for (std::string line; std::getline(lines, line);) {
    outcome.lines.push_back(nlohmann::json::parse(line));
  }
  return outcome;
}

/// Runs to the end, where every example was acknowledged once: BatchDispatcher ends the process
/// when a batch comes back twice.
Outcome Finish(const StaleOptions& options) {
  Outcome outcome = RunJob(options);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.last().value("examples", 0U), options.epochs * kExamples) << outcome.text;
  return outcome;
}

double Steps(const Outcome& outcome) { return outcome.last()["steps"].get<double>(); }

TEST(StaleJobTest, EqualOptionsGiveEqualLines) {
  StaleOptions options = Quick(3);
  options.threads = 2;
  options.evaluations = 2;
  options.stragglers = {{.slot = 1, .factor = 2}};
  options.bandwidth = 1e6;
  const Outcome first = Finish(options);
  EXPECT_EQ(first.lines.size(), 3U);
  EXPECT_EQ(first.text, RunJob(options).text);
  options.seed = 2;
  EXPECT_NE(first.text, RunJob(options).text);
}

TEST(StaleJobTest, OneWorkerHasNoStaleness) {
  const Outcome outcome = Finish(Quick(1));
  EXPECT_EQ(outcome.last()["staleness_batches"], 0.0);
  EXPECT_GT(outcome.last()["top1"], 0.5);
}

/// Batches of others between a fetch and its push, in a job of four that exchange every 8 steps.
double GapAt(double latency, double apply = 0) {
  StaleOptions options = Quick(4);
  options.epochs = 3;
  options.fetch_every = options.push_every = 8;
  options.rate = 1e-4;
  options.warm_start = 0;
  options.latency = latency;
  options.apply = apply;
  const nlohmann::json line = RunJob(options).lines.at(1);  // the third epoch has an end
  return line["gap_batches"].get<double>();
}

// A worker that exchanges every 8 steps asks for values, uses them when they come, and pushes 8
// steps later what it made of them: as long as the way there and back is shorter than that, each of
// the three others pushes 8 batches from the one moment to the other. Beyond it waits for values,
// which have become older.
TEST(StaleJobTest, StalenessIsWhatLatencySays) {
  EXPECT_NEAR(GapAt(0.5), 24, 3);
  EXPECT_NEAR(GapAt(3), 24, 3);
  EXPECT_GT(GapAt(8), 28);
}

// What a server still has to apply is not in the values that it gives: of pushes that take it 1.5
// steps each, and that queue where all workers' take six of eight.
TEST(StaleJobTest, PushesAreTheOlderTheLongerServersTake) {
  const double gap = GapAt(0.5, /*apply=*/1.5);
  EXPECT_GT(gap, 24 * (8 + 1.5) / 8 - 1);
  EXPECT_LT(gap, 24 * (8 + 4 * 1.5) / 8);
}

TEST(StaleJobTest, AStragglerDoesLess) {
  StaleOptions options = Quick(4);
  options.warm_start = 0;
  options.epochs = 5;
  const double even = Steps(Finish(options));
  options.stragglers = {{.slot = 2, .factor = 4}};
  EXPECT_NEAR(Steps(Finish(options)) / even, 4 / 3.25, 0.15);
}

TEST(StaleJobTest, AWorkerThatStandsStillDoesLess) {
  StaleOptions options = Quick(2);
  options.warm_start = 0;
  options.epochs = 3;
  const double even = Steps(Finish(options));
  options.pauses = {{.slot = 1, .pause = {.every = 40, .lasts = 20}}};
  EXPECT_NEAR(Steps(Finish(options)) / even, 2 / 1.5, 0.15);
}

TEST(StaleJobTest, WorkersComeAndGo) {
  StaleOptions options = Quick(2);
  options.epochs = 3;
  options.evaluations = 4;
  options.scalings = {
      {.epoch = 0.5, .workers = 6}, {.epoch = 1.5, .workers = 1}, {.epoch = 1.6, .workers = 3}};
  const Outcome outcome = Finish(options);
  EXPECT_EQ(outcome.lines[0]["workers"], 2);
  EXPECT_EQ(outcome.lines[3]["workers"], 6);
  EXPECT_EQ(outcome.lines[11]["workers"], 3);
}

TEST(StaleJobTest, WorkersThatGoWhileTheyStandStillHandBackTheirBatches) {
  StaleOptions options = Quick(3);
  options.threads = 2;
  options.latency = 5;
  options.pauses = {{.slot = 2, .pause = {.every = 30, .lasts = 25}}};
  options.scalings = {{.epoch = 0.4, .workers = 1}};
  Finish(options);
}

TEST(StaleJobTest, NarrowLinksTakeTime) {
  StaleOptions options = Quick(4);
  options.warm_start = 0;
  options.push_every = options.fetch_every = 1;
  const double endless = Steps(Finish(options));
  options.bandwidth = 1e4;  // of the net's 6 KB four workers send and take one each, a step
  EXPECT_GT(Steps(Finish(options)), 2 * endless);
}

// Values come back over the server's link, one answer after the other.
TEST(StaleJobTest, FetchesTakeTheirBytesTime) {
  StaleOptions options = Quick(1);
  options.push_every = 64;
  options.fetch_every = 1;
  const double endless = Steps(Finish(options));
  options.bandwidth = 2e3;  // three steps for all values
  EXPECT_GT(Steps(Finish(options)), 2 * endless);
}

TEST(StaleJobTest, ServersShareTheParameters) {
  StaleOptions options = Quick(4);
  options.servers = 3;
  options.scalings = {{.epoch = 0.5, .workers = 5}};
  EXPECT_GT(Finish(options).last()["top1"], 0.2);
}

TEST(StaleJobTest, DivergenceIsTheLastLineAndAnError) {
  StaleOptions options = Quick(2);
  options.rate = 1e5;
  options.epochs = 3;
  const Outcome outcome = RunJob(options);
  EXPECT_TRUE(absl::IsInvalidArgument(outcome.status)) << outcome.status;
  EXPECT_THAT(outcome.status.message(), HasSubstr("diverged"));
  EXPECT_EQ(outcome.last()["diverged"], true);
  EXPECT_EQ(outcome.last()["why"], std::string(outcome.status.message()));
}

TEST(StaleJobTest, WhatCannotBeIsRefused) {
  const auto message_of = [](const StaleOptions& options) {
    return std::string(RunJob(options).status.message());
  };
  StaleOptions options = Quick(2);
  options.stragglers = {{.slot = 2, .factor = 4}};
  EXPECT_THAT(message_of(options), HasSubstr("--straggler: there is no worker 2, only 0 to 1"));
  options = Quick(2);
  options.pauses = {{.slot = 0, .pause = {.every = 10, .lasts = 10}}};
  EXPECT_THAT(message_of(options), HasSubstr("--pause: "));
  options = Quick(2);
  options.scalings = {{.epoch = 2, .workers = 4}};
  EXPECT_THAT(message_of(options), HasSubstr("--scale: 2 is not in 0 to 1"));
  options = Quick(2);
  options.batch = kExamples + 1;
  EXPECT_THAT(message_of(options), HasSubstr("--batch: "));
  options = Quick(1024);
  options.threads = 1'000'000;
  EXPECT_THAT(message_of(options), HasSubstr("GB of memory"));
}

}  // namespace
}  // namespace adamant::bench
