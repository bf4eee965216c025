#include "services/common/job/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/dataset/digits.h"
#include "services/common/job/yaml/problems.h"
#include "services/common/job/yaml/yaml_tree.h"

namespace adamant::job {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

constexpr char kMinimal[] = R"(apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata:
  name: example
spec:
  model:
    reference: adam-mnist
  data:
    train:
      digits: {seed: 1, examples: 1000}
    validation:
      digits: {seed: 2, examples: 100}
)";

/// A net of two layers, ending in `layers`, and data that fits it.
std::string WithLayers(const std::string& layers) {
  return R"(apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: example}
spec:
  data:
    train:
      digits: {seed: 1, examples: 1000}
    validation:
      digits: {seed: 2, examples: 100}
  model:
    network:
      input: [1, 28, 28]
      classes: 10
      layers:
)" + layers;
}

std::string ProblemsOf(const ParseResult& result) {
  std::string text;
  for (const Diagnostic& problem : result.problems) {
    text += Format(problem) + "\n";
  }
  return text;
}

std::string WithDigits(std::uint64_t seed, std::uint64_t examples) {
  constexpr std::string_view kDigits = "{seed: 1, examples: 1000}";
  std::string manifest = kMinimal;
  manifest.replace(
      manifest.find(kDigits),
      kDigits.size(),
      "{seed: " + std::to_string(seed) + ", examples: " + std::to_string(examples) + "}");
  return manifest;
}

TEST(JobTest, AsManyDigitsMayBeAskedForAsTheCommandDraws) {
  constexpr std::uint64_t kMost = dataset::kMostDigits;
  constexpr std::uint64_t kMostSeed = dataset::kMostDigitsSeed;
  const ParseResult most = ParseJob(WithDigits(kMostSeed, kMost), "job.yaml");
  EXPECT_NE(most.job, nullptr) << ProblemsOf(most);
  EXPECT_EQ(ParseJob(WithDigits(1, kMost + 1), "job.yaml").job, nullptr);
  EXPECT_EQ(ParseJob(WithDigits(kMostSeed + 1, 1000), "job.yaml").job, nullptr);
}

TEST(JobTest, WhatIsRightInAManifestWithProblemsIsKnown) {
  const std::string good =
      std::string(kMinimal) + "  runPolicy: {epochs: 7, targetAccuracy: 0.5}\n";
  const ParseResult right = ParseJob(good, "job.yaml");
  ASSERT_NE(right.job, nullptr) << ProblemsOf(right);
  EXPECT_EQ(right.draft, nullptr);
  const ParseResult wrong = ParseJob(good + "  colour: red\n", "job.yaml");
  EXPECT_EQ(wrong.job, nullptr);
  ASSERT_NE(wrong.draft, nullptr);
  EXPECT_EQ(wrong.draft->spec().run_policy().epochs(), 7);
  EXPECT_EQ(wrong.draft->spec().run_policy().target_accuracy(), 0.5);
}

TEST(JobTest, AMinimalManifestGetsEveryDefault) {
  const ParseResult result = ParseJob(kMinimal, "job.yaml");
  ASSERT_NE(result.job, nullptr) << ProblemsOf(result);
  const v1::JobSpec& spec = result.job->spec();
  EXPECT_EQ(spec.data().batch_size(), 32);
  EXPECT_EQ(spec.data().cache(), std::int64_t{256} << 20);
  EXPECT_EQ(spec.data().transformations().normalise().deviation(), 1);
  EXPECT_EQ(spec.optimiser().kind(), v1::Optimiser::KIND_MOMENTUM);
  EXPECT_EQ(spec.optimiser().momentum(), 0.9);
  EXPECT_FALSE(spec.optimiser().has_epsilon());
  EXPECT_EQ(spec.optimiser().schedule().kind(), v1::Schedule::KIND_CONSTANT);
  EXPECT_FALSE(spec.optimiser().schedule().has_warm_up());
  EXPECT_EQ(spec.distribution().workers(), 2);
  EXPECT_EQ(spec.distribution().threads_per_worker(), 1);
  EXPECT_EQ(spec.distribution().parameter_servers().count(), 3);
  EXPECT_EQ(spec.distribution().parameter_servers().copies(), 3);
  EXPECT_EQ(spec.distribution().parameter_servers().min_in_sync(), 2);
  EXPECT_EQ(spec.distribution().parameter_servers().persistence().flush_interval().seconds(), 1);
  EXPECT_EQ(spec.distribution().data_servers(), 1);
  EXPECT_EQ(spec.run_policy().epochs(), 10);
  EXPECT_FALSE(spec.run_policy().has_target_accuracy());
  EXPECT_EQ(spec.run_policy().checkpoint_interval().seconds(), 300);
}

TEST(JobTest, TheDataSeedIsThatOfTheRunUnlessGiven) {
  const std::string manifest = std::string(kMinimal) + "  runPolicy: {seed: 5}\n";
  EXPECT_EQ(ParseJob(manifest, "job.yaml").job->spec().data().seed(), 5);
  const std::string own = std::string(kMinimal) + "    seed: 7\n  runPolicy: {seed: 5}\n";
  EXPECT_EQ(ParseJob(own, "job.yaml").job->spec().data().seed(), 7);
}

TEST(JobTest, WhoRunsTheOptimiserDependsOnItsKind) {
  for (const auto& [optimiser, location] :
       {std::pair("{kind: Adagrad}", v1::Optimiser::LOCATION_SERVER),
        std::pair("{kind: Sgd}", v1::Optimiser::LOCATION_WORKER),
        std::pair("{}", v1::Optimiser::LOCATION_WORKER),
        std::pair("{kind: Sgd, location: Server}", v1::Optimiser::LOCATION_SERVER)}) {
    const ParseResult result =
        ParseJob(kMinimal + ("  optimiser: " + std::string(optimiser)) + "\n", "job.yaml");
    ASSERT_NE(result.job, nullptr) << ProblemsOf(result);
    EXPECT_EQ(result.job->spec().optimiser().location(), location) << optimiser;
  }
}

TEST(JobTest, AllProblemsAreReportedAtOnceInTheirOrder) {
  const ParseResult result = ParseJob(std::string(kMinimal) +
                                          "    batchSize: 0\n"
                                          "  optimizer: {}\n"
                                          "  distribution:\n"
                                          "    workers: two\n"
                                          "    parameterServers: {copies: 4}\n",
                                      "job.yaml");
  EXPECT_EQ(result.job, nullptr);
  EXPECT_THAT(result.problems,
              ElementsAre(AllOf(Field(&Diagnostic::line, 13),
                                Field(&Diagnostic::field_path, "spec.data.batchSize")),
                          AllOf(Field(&Diagnostic::line, 14),
                                Field(&Diagnostic::hint, "did you mean optimiser?")),
                          AllOf(Field(&Diagnostic::line, 16),
                                Field(&Diagnostic::field_path, "spec.distribution.workers")),
                          AllOf(Field(&Diagnostic::line, 17),
                                Field(&Diagnostic::message, HasSubstr("4 is out of range")))));
}

TEST(JobTest, ADiagnosticIsFormattedOnOneLine) {
  const Diagnostic diagnostic = {
      "job.yaml", 3, 5, "spec.optimizer", "unknown field", "did you mean optimiser?"};
  EXPECT_EQ(Format(diagnostic),
            "job.yaml:3:5: spec.optimizer: unknown field; did you mean optimiser?");
  EXPECT_EQ(Format({"job.yaml", 0, 0, "", "the file is empty", ""}), "job.yaml: the file is empty");
}

TEST(JobTest, LayersWithoutInputsReadTheLayerBeforeThem) {
  const ParseResult result = ParseJob(WithLayers(R"(
        - {name: conv, kind: Conv2d, channels: 4, kernel: [5, 3], stride: [2, 1]}
        - {name: out, kind: FullyConnected, outputs: 10}
)"),
                                      "job.yaml");
  ASSERT_NE(result.job, nullptr) << ProblemsOf(result);
  const model::Net net = NetOf(*result.job);
  ASSERT_EQ(net.layers.size(), 2U);
  EXPECT_THAT(net.layers[0].inputs, ElementsAre("input"));
  EXPECT_THAT(net.layers[1].inputs, ElementsAre("conv"));
  EXPECT_EQ(net.layers[0].kind, model::LayerKind::kConv2d);
  EXPECT_EQ(net.layers[0].channels, 4);
  EXPECT_EQ(net.layers[0].kernel.height, 5);
  EXPECT_EQ(net.layers[0].kernel.width, 3);
  EXPECT_EQ(net.layers[0].stride.height, 2);
  EXPECT_EQ(net.layers[0].padding.height, 0);
  EXPECT_EQ(net.layers[0].dilation.width, 1);
  EXPECT_EQ(net.layers[1].channels, 10);
  EXPECT_EQ(net.input, (Shape{1, 28, 28}));
  EXPECT_EQ(net.classes, 10);
}

TEST(JobTest, AReferenceNetComesFromTheModelLibrary) {
  const ParseResult result = ParseJob(kMinimal, "job.yaml");
  ASSERT_NE(result.job, nullptr) << ProblemsOf(result);
  EXPECT_EQ(NetOf(*result.job).layers.size(), model::ReferenceNet("adam-mnist")->layers.size());
}

TEST(JobTest, RelativePathsStartAtTheManifestsFolder) {
  const auto manifests = std::filesystem::path(ADAMANT_SOURCE_DIR) / "tests" / "manifests";
  const ParseResult result = LoadJob(manifests / "good" / "idx.yaml");
  ASSERT_NE(result.job, nullptr) << ProblemsOf(result);
  EXPECT_EQ(result.job->spec().data().train().idx().images(),
            (manifests / "data" / "images").string());
}

TEST(JobTest, WhatAJobStartsFromLiesBesideTheManifest) {
  const ParseResult parsed =
      ParseJob(std::string(kMinimal) + "  startFrom: {checkpoint: {path: first/../saved}}\n",
               "/jobs/a.yaml");
  ASSERT_NE(parsed.job, nullptr) << ProblemsOf(parsed);
  EXPECT_EQ(parsed.job->spec().start_from().checkpoint().path(), "/jobs/saved");
  EXPECT_FALSE(parsed.job->spec().start_from().has_weights());
}

TEST(JobTest, CheckpointsAreCopiedOnlyWhereTheManifestSaysHowManyAreKept) {
  const ParseResult none = ParseJob(kMinimal, "a.yaml");
  ASSERT_NE(none.job, nullptr) << ProblemsOf(none);
  EXPECT_FALSE(none.job->spec().output().has_checkpoints());
  const std::string output = std::string(kMinimal) + "  output: {storage: {}, checkpoints: ";
  const ParseResult kept = ParseJob(output + "{keep: 2}}\n", "a.yaml");
  ASSERT_NE(kept.job, nullptr) << ProblemsOf(kept);
  EXPECT_EQ(kept.job->spec().output().checkpoints().keep(), 2);
  EXPECT_FALSE(kept.job->spec().output().checkpoints().has_every());
  EXPECT_THAT(ProblemsOf(ParseJob(output + "{every: 2}}\n", "a.yaml")),
              HasSubstr("spec.output.checkpoints.keep"));
  EXPECT_THAT(ProblemsOf(ParseJob(output + "{keep: 0}}\n", "a.yaml")),
              HasSubstr("spec.output.checkpoints.keep"));
}

TEST(JobTest, AClusterRefusesWhatOneMachineAloneHas) {
  Problems problems("");
  const std::string text = std::string(kMinimal) +
                           "  startFrom: {weights: {path: model.onnx}}\n"
                           "  output: {storage: {}, checkpoints: {keep: 1}}\n";
  const std::optional<YamlNode> root = ReadYaml(text, problems);
  ASSERT_TRUE(root.has_value());
  const std::string told = ProblemsOf(ParseObject(*root, problems));
  EXPECT_THAT(told, HasSubstr("spec.startFrom: not available in a cluster"));
  EXPECT_THAT(told, HasSubstr("spec.output.checkpoints: not available in a cluster"));
}

TEST(JobTest, AFileThatCannotBeReadIsNamedOnce) {
  EXPECT_EQ(ProblemsOf(LoadJob("no/such/job.yaml")),
            "no/such/job.yaml: cannot open: No such file or directory\n");
  const std::string folder = testing::TempDir();
  EXPECT_EQ(ProblemsOf(LoadJob(folder)), folder + ": cannot read: Is a directory\n");
}

TEST(JobTest, AFileThatIsNotThereIsOneProblem) {
  const ParseResult result = LoadJob("no/such/job.yaml");
  EXPECT_EQ(result.job, nullptr);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(Format(result.problems[0]), HasSubstr("no/such/job.yaml"));
}

TEST(JobTest, MoreThanAMegabyteIsRefused) {
  std::string manifest = kMinimal;
  manifest += "#" + std::string(std::size_t{1} << 20, 'x') + "\n";
  const ParseResult result = ParseJob(manifest, "job.yaml");
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0].message, HasSubstr("(allowed: 1048576)"));
}

TEST(JobTest, AFileThatIsTooLargeIsNamedOnce) {
  const std::string path = testing::TempDir() + "adamant_large_job.yaml";
  std::ofstream(path) << std::string((std::size_t{1} << 20) + 1, '#');
  const ParseResult result = LoadJob(path);
  EXPECT_EQ(ProblemsOf(result), path + ": larger than the limit of 1048576 bytes\n");
  std::filesystem::remove(path);
}

TEST(JobTest, ListsThatTheParserGivesUpAreCalledTooDeepOnce) {
  for (const char* open : {"[", "- ", "{a: "}) {
    std::string lists;
    for (int i = 0; i < 5000; ++i) {
      lists += open;
    }
    const ParseResult result = ParseJob(lists, "job.yaml");
    EXPECT_EQ(result.job, nullptr);
    EXPECT_THAT(result.problems,
                ElementsAre(Field(&Diagnostic::message, "nested too deep (allowed: 32 levels)")))
        << ProblemsOf(result);
  }
}

TEST(JobTest, TheDigitsExampleIsValid) {
  const ParseResult result =
      LoadJob(std::filesystem::path(ADAMANT_SOURCE_DIR) / "deploy" / "examples" / "digits.yaml");
  ASSERT_NE(result.job, nullptr) << ProblemsOf(result);
}

TEST(JobTest, TheMnistExamplesLackNothingButTheirFiles) {
  for (const char* name :
       {"mnist.yaml", "mnist-claim.yaml", "mnist-download.yaml", "mnist-replicated.yaml"}) {
    const ParseResult result =
        LoadJob(std::filesystem::path(ADAMANT_SOURCE_DIR) / "deploy" / "examples" / name);
    for (const Diagnostic& problem : result.problems) {
      EXPECT_THAT(problem.message, HasSubstr("there is no file"));
    }
  }
}

}  // namespace
}  // namespace adamant::job
