#include "operator/local/model/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "operator/local/model/net_text.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::local {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ModelFileTest : public testing::Test {
 protected:
  static model::Graph GraphOf(model::LayerKind activation, Shape input = {2, 1, 2}) {
    model::Net net{.input = std::move(input), .classes = 2, .layers = {}, .output = ""};
    net.layers.push_back({.name = "act", .kind = activation, .inputs = {"input"}});
    net.layers.push_back({.name = "drop",
                          .kind = model::LayerKind::kDropout,
                          .inputs = {"act"},
                          .dropout_rate = 0.5});
    net.layers.push_back({.name = "fc",
                          .kind = model::LayerKind::kFullyConnected,
                          .inputs = {"drop"},
                          .channels = 2});
    return model::BuildGraph(net).value();
  }

  absl::Status Write(const exports::Metadata& metadata) {
    return WriteModel({.path = path_}, job_, graph_, weights_, metadata);
  }

  const std::string path_ = testing::TempDir() + "/model_file_test.safetensors";
  const model::Graph graph_ = GraphOf(model::LayerKind::kRelu);
  const std::vector<float> weights_ = std::vector<float>(10, 0.5F);
  v1::TrainingJob job_;
};

TEST_F(ModelFileTest, TheJobsNormalisationIsReadBackFromTheFile) {
  v1::Normalise& normalise =
      *job_.mutable_spec()->mutable_data()->mutable_transformations()->mutable_normalise();
  normalise.set_mean(0.1307);
  normalise.set_deviation(0.3081);
  ASSERT_TRUE(Write({}).ok());
  const auto model = ReadModel(path_, graph_);
  ASSERT_TRUE(model.ok()) << model.status();
  const exports::Normalisation expected = NormalisationOf(job_, graph_);
  EXPECT_EQ(model->normalisation->mean, expected.mean);
  EXPECT_EQ(model->normalisation->deviation, expected.deviation);
}

TEST_F(ModelFileTest, WhatAModelSaysOfItselfIsKept) {
  const exports::Metadata metadata = {{"mean", "[1, -2.5]"}, {"deviation", "[3, 4e-05]"}};
  ASSERT_TRUE(Write(metadata).ok());
  const auto model = ReadModel(path_, graph_);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->metadata, metadata);
  EXPECT_THAT(model->normalisation->mean, ElementsAre(1, -2.5F));
  EXPECT_THAT(model->normalisation->deviation, ElementsAre(3, 4e-05F));
}

TEST_F(ModelFileTest, AModelWithWeightsThatAreNotFiniteSaysHowMany) {
  job_.mutable_spec()
      ->mutable_data()
      ->mutable_transformations()
      ->mutable_normalise()
      ->set_deviation(1);
  ASSERT_TRUE(Write({}).ok());
  const auto finite = ReadModel(path_, graph_);
  ASSERT_TRUE(finite.ok()) << finite.status();
  EXPECT_FALSE(finite->metadata.contains("not_finite"));
  std::vector<float> weights = weights_;
  weights[3] = std::numeric_limits<float>::quiet_NaN();
  weights[7] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(CountNotFinite(weights), 2u);
  ASSERT_TRUE(WriteModel({.path = path_}, job_, graph_, weights, {}).ok());
  const auto bad = ReadModel(path_, graph_);
  ASSERT_TRUE(bad.ok()) << bad.status();
  EXPECT_EQ(bad->metadata.at("not_finite"), "2");
}

TEST_F(ModelFileTest, AnOnnxFileIsForOtherTools) {
  const auto model = ReadModel("run/model.onnx", graph_);
  EXPECT_TRUE(absl::IsInvalidArgument(model.status()));
  EXPECT_NE(model.status().message().find("take the run's model.safetensors"), std::string::npos);
}

TEST_F(ModelFileTest, ANormalisationThatDoesNotFitTheNetIsRefused) {
  for (const exports::Metadata& metadata :
       {exports::Metadata{{"mean", "[1, 2]"}},
        exports::Metadata{{"mean", "[1, 2]"}, {"deviation", "[1]"}},
        exports::Metadata{{"mean", "[1, 2, 3]"}, {"deviation", "[1, 2]"}},
        exports::Metadata{{"mean", "[1, 2"}, {"deviation", "[1, 2]"}},
        exports::Metadata{{"mean", "[1, nan]"}, {"deviation", "[1, 2]"}},
        exports::Metadata{{"mean", "[1, 2]"}, {"deviation", "[1, 0]"}},
        exports::Metadata{{"mean", ""}, {"deviation", "[1, 2]"}}}) {
    const absl::Status status = Write(metadata);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("mean and deviation"));
  }
}

TEST_F(ModelFileTest, ANetThatComputesSomethingElseIsAnotherNet) {
  ASSERT_TRUE(Write({}).ok());
  EXPECT_THAT(
      std::string(ReadModel(path_, GraphOf(model::LayerKind::kTanh)).status().message()),
      HasSubstr("is a model of another net: it has act: Relu(input), not act: Tanh(input)"));
  EXPECT_THAT(
      std::string(ReadModel(path_, GraphOf(model::LayerKind::kRelu, {2, 2, 1})).status().message()),
      HasSubstr("it has input: 2x1x2, not input: 2x2x1"));
}

TEST_F(ModelFileTest, FilesThatDoNotDescribeThemselvesAreRead) {
  const exports::Metadata metadata = {{"mean", "[0, 0]"}, {"deviation", "[1, 1]"}};
  ASSERT_TRUE(Write(metadata).ok());  // no net, as earlier versions wrote it
  EXPECT_TRUE(ReadModel(path_, GraphOf(model::LayerKind::kTanh)).ok());
}

TEST(NetTextTest, ALayerMoreOrLessIsADifference) {
  EXPECT_EQ(FirstDifference("a\nb\n", "a\nb\n"), "");
  EXPECT_EQ(FirstDifference("a\n", "a\nb\n"), "no more layers, not b");
  EXPECT_EQ(FirstDifference("a\nb\n", "a\n"), "b, not no more layers");
}

}  // namespace
}  // namespace adamant::local
