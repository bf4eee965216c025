#include "operator/kube/job/checkpoint_requests.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "proto/adamant/v1/resources.pb.h"

namespace adamant::kube {
namespace {

class CheckpointRequestsTest : public testing::Test {
 protected:
  static JobView View(const std::string& request, const std::string& answered = "") {
    JobView view;
    view.checkpoint_request = request;
    auto status = std::make_shared<v1::TrainingJobStatus>();
    if (!answered.empty()) {
      status->mutable_checkpoint()->set_request(answered);
    }
    view.status = std::move(status);
    return view;
  }

  std::string AnswerTo(const JobView& view, std::uint64_t snapshot) {
    v1::TrainingJobStatus status;
    requests_.Answer(view, {.snapshot = snapshot, .epoch = 2}, status);
    return status.checkpoint().request();
  }

  CheckpointRequests requests_;
};

TEST_F(CheckpointRequestsTest, ARequestIsPassedOnOnce) {
  EXPECT_FALSE(requests_.Take(View(""), 3));
  EXPECT_TRUE(requests_.Take(View("one"), 3));
  EXPECT_FALSE(requests_.Take(View("one"), 3));
  EXPECT_TRUE(requests_.Take(View("two"), 4));
}

TEST_F(CheckpointRequestsTest, OneThatTheStatusAnswersIsNotPassedOnByTheNextLeader) {
  EXPECT_FALSE(requests_.Take(View("one", "one"), 3));
}

TEST_F(CheckpointRequestsTest, WhatBeganAfterTheRequestAnswersIt) {
  requests_.Take(View("two", "one"), 3);
  EXPECT_EQ(AnswerTo(View("two", "one"), 3), "one");
  EXPECT_EQ(AnswerTo(View("two", "one"), 4), "two");
  EXPECT_EQ(AnswerTo(View("two", "one"), 0), "");
}

}  // namespace
}  // namespace adamant::kube
