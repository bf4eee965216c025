#include "operator/kube/restart_counter.h"

#include <gtest/gtest.h>

#include "proto/adamant/v1/resources.pb.h"

namespace adamant::kube {
namespace {

using controller::Role;
using Status = v1::TrainingJobStatus;

TEST(RestartCounterTest, ASuspensionForgetsNothing) {
  RestartCounter counter;
  counter.StartFrom(Status(), 0);
  Status status;
  counter.Fill(2, status);
  EXPECT_EQ(status.restarts(), 2);
  counter.Fill(0, status);  // resumed
  EXPECT_EQ(status.restarts(), 2);
  counter.Fill(1, status);
  EXPECT_EQ(status.restarts(), 3);
}

TEST(RestartCounterTest, TheNextLeaderGoesOnFromTheStatus) {
  RestartCounter first;
  first.StartFrom(Status(), 0);
  first.OnRestart(Role::kWorker);
  first.OnRestart(Role::kParameterServer);
  first.OnRestart(Role::kParameterServer);
  Status status;
  first.Fill(2, status);
  first.Fill(0, status);
  first.Fill(1, status);
  RestartCounter next;
  next.StartFrom(status, 1);
  next.OnRestart(Role::kDataServer);
  Status shown;
  next.Fill(2, shown);
  EXPECT_EQ(shown.restarts(), 4);
  EXPECT_EQ(shown.roles().worker().restarts(), 1);
  EXPECT_EQ(shown.roles().data_server().restarts(), 1);
  EXPECT_EQ(shown.roles().parameter_server().restarts(), 2);
}

TEST(RestartCounterTest, AStatusThatWasNotWrittenInTimeIsNoNegativeNumber) {
  RestartCounter counter;
  counter.StartFrom(Status(), 3);
  Status status;
  counter.Fill(3, status);
  EXPECT_EQ(status.restarts(), 3);
}

}  // namespace
}  // namespace adamant::kube
