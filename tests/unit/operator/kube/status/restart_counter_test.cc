#include "operator/kube/status/restart_counter.h"

#include <gtest/gtest.h>

#include "proto/adamant/v1/resources.pb.h"

namespace adamant::kube {
namespace {

using controller::LossReason;
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
  first.OnRestart(Role::kWorker, LossReason::kOutOfMemory);
  first.OnRestart(Role::kParameterServer, LossReason::kNodeLost);
  first.OnRestart(Role::kParameterServer, LossReason::kEvicted);
  Status status;
  first.Fill(2, status);
  first.Fill(0, status);
  first.Fill(1, status);
  RestartCounter next;
  next.StartFrom(status, 1);
  next.OnRestart(Role::kDataServer, LossReason::kUnresponsive);
  next.OnRestart(Role::kWorker, LossReason::kOutOfMemory);
  Status shown;
  next.Fill(2, shown);
  EXPECT_EQ(shown.restarts(), 4);
  EXPECT_EQ(shown.roles().worker().restarts(), 2);
  EXPECT_EQ(shown.roles().worker().restart_causes().ShortDebugString(), "out_of_memory: 2");
  EXPECT_EQ(shown.roles().data_server().restart_causes().ShortDebugString(), "unresponsive: 1");
  EXPECT_EQ(shown.roles().parameter_server().restart_causes().ShortDebugString(),
            "evicted: 1 node_lost: 1");
  EXPECT_EQ(shown.roles().data_server().restarts(), 1);
  EXPECT_EQ(shown.roles().parameter_server().restarts(), 2);
}

// A status of an operator that did not count by cause.
TEST(RestartCounterTest, RestartsOfUnknownCauseStayCounted) {
  Status told;
  told.mutable_roles()->mutable_worker()->set_restarts(5);
  RestartCounter counter;
  counter.StartFrom(told, 0);
  counter.OnRestart(Role::kWorker, LossReason::kDeleted);
  Status status;
  counter.Fill(1, status);
  EXPECT_EQ(status.roles().worker().restarts(), 6);
  EXPECT_EQ(status.roles().worker().restart_causes().ShortDebugString(), "deleted: 1");
}

TEST(RestartCounterTest, EachCauseIsReadFromItsField) {
  v1::RoleStatus told;
  v1::RestartCauses& causes = *told.mutable_restart_causes();
  causes.set_failed(1);
  causes.set_out_of_memory(2);
  causes.set_evicted(3);
  causes.set_node_lost(4);
  causes.set_unresponsive(5);
  causes.set_deleted(6);
  EXPECT_EQ(RestartsOf(told, LossReason::kFailed), 1);
  EXPECT_EQ(RestartsOf(told, LossReason::kOutOfMemory), 2);
  EXPECT_EQ(RestartsOf(told, LossReason::kEvicted), 3);
  EXPECT_EQ(RestartsOf(told, LossReason::kNodeLost), 4);
  EXPECT_EQ(RestartsOf(told, LossReason::kUnresponsive), 5);
  EXPECT_EQ(RestartsOf(told, LossReason::kDeleted), 6);
  EXPECT_EQ(RestartsOf(v1::RoleStatus(), LossReason::kDeleted), 0);
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
