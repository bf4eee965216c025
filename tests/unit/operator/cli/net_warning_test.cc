#include "operator/cli/net_warning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"

namespace adamant::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> WarningsOf(const std::string& last_layer, const std::string& data = "") {
  const job::ParseResult parsed = job::ParseJob(R"(apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: net}
spec:
  model:
    network:
      input: [1, 28, 28]
      classes: 10
      layers:
        - {name: fc1, kind: FullyConnected, outputs: 10}
)" + (last_layer.empty() ? "" : "        - " + last_layer + "\n") +
                                                    R"(  data:
    train: {digits: {seed: 1, examples: 1000}}
    validation: {digits: {seed: 2, examples: 100}}
)" + data,
                                                "job.yaml");
  return parsed.job == nullptr ? std::vector<std::string>{"not valid"} : NetWarnings(*parsed.job);
}

TEST(NetWarningTest, LogitsThatComeAsTheyAreAreFine) { EXPECT_THAT(WarningsOf(""), IsEmpty()); }

TEST(NetWarningTest, WhatChangesLogitsIsWarnedOf) {
  EXPECT_THAT(WarningsOf("{name: last, kind: Relu}"),
              ElementsAre("spec.model.network: the output is layer last: a Relu cuts logits off at "
                          "0, where they get no gradient, and a net learns little so; let it end "
                          "with the layer before, as softmax is part of the loss"));
  for (const char* kind : {"Sigmoid", "Tanh", "Dropout"}) {
    EXPECT_THAT(WarningsOf(std::string("{name: last, kind: ") + kind + "}"),
                ElementsAre(HasSubstr(std::string("a ") + kind)));
  }
}

TEST(NetWarningTest, ShiftsOutOfSightAreWarnedOf) {
  EXPECT_THAT(WarningsOf("", "    transformations: {translate: 13}\n"), IsEmpty());
  EXPECT_THAT(WarningsOf("", "    transformations: {translate: 14}\n"),
              ElementsAre("spec.data.transformations.translate: with 14 images of 28 pixels are "
                          "shifted out of sight"));
}

}  // namespace
}  // namespace adamant::cli
