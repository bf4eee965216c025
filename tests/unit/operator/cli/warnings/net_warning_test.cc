#include "operator/cli/warnings/net_warning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "proto/adamant/v1/job.pb.h"

namespace adamant::cli {
namespace {

using testing::HasSubstr;

v1::Layer& AddLayer(v1::Network& network, const std::string& name, v1::Layer::Kind kind) {
  v1::Layer& layer = *network.add_layers();
  layer.add_inputs(network.layers_size() == 1 ? "input"
                                              : network.layers(network.layers_size() - 2).name());
  layer.set_name(name);
  layer.set_kind(kind);
  return layer;
}

// Of a net of one fully connected layer, and `last` behind it.
std::string WarningOf(std::optional<v1::Layer::Kind> last) {
  v1::TrainingJob job;
  v1::Network& network = *job.mutable_spec()->mutable_model()->mutable_network();
  for (const int size : {1, 28, 28}) {
    network.add_input(size);
  }
  network.set_classes(10);
  AddLayer(network, "fc1", v1::Layer::KIND_FULLY_CONNECTED).set_outputs(10);
  if (last) {
    AddLayer(network, "last", *last);
  }
  return NetWarning(job);
}

TEST(NetWarningTest, LogitsThatComeAsTheyAreAreFine) { EXPECT_EQ(WarningOf(std::nullopt), ""); }

TEST(NetWarningTest, WhatChangesLogitsIsWarnedOf) {
  EXPECT_EQ(WarningOf(v1::Layer::KIND_RELU),
            "spec.model.network: the output is layer last: a Relu cuts logits off at 0, where they "
            "get no gradient, and a net learns little so; let it end with the layer before, as "
            "softmax is part of the loss");
  EXPECT_THAT(WarningOf(v1::Layer::KIND_SIGMOID), HasSubstr("a Sigmoid"));
  EXPECT_THAT(WarningOf(v1::Layer::KIND_TANH), HasSubstr("a Tanh"));
  EXPECT_THAT(WarningOf(v1::Layer::KIND_DROPOUT), HasSubstr("a Dropout"));
}

}  // namespace
}  // namespace adamant::cli
