#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/cli/console/exit_codes.h"
#include "operator/cli/kubectl/check/check_job.h"
#include "operator/cli/kubectl/commands.h"
#include "tests/unit/operator/cli/kubectl/acting_sleeper.h"
#include "tests/unit/operator/cli/kubectl/job_rig.h"

namespace adamant::kubectl {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

constexpr int kDoesNothing = 1'000'000;

// An operator that starts what is missing at each wait of the command, and ends the job when asked.
class CheckTest : public testing::Test {
 protected:
  CheckTest() : sleeper_(rig_.clock, [this](int wait) { Lead(wait); }) {}

  absl::StatusOr<int> Check(bool keep = false) {
    Session base = rig_.NewSession();
    Session session{.client = base.client,
                    .ns = base.ns,
                    .clock = base.clock,
                    .sleeper = sleeper_,
                    .cancellation = cancellation_,
                    .print = base.print};
    return CheckCluster(session, {.target = {}, .timeout_seconds = 20, .keep = keep});
  }

  std::vector<Json> Jobs() { return *rig_.client.List(kube::kTrainingJobs, {.ns = "training"}); }

  void Lead(int wait) {
    if (wait < first_wait_) {
      return;
    }
    Json job = Jobs().front();
    rig_.job = job;
    EndDeletedPods();
    const bool last = job["spec"]["runPolicy"]["epochs"] == 1;
    job["status"] = {{"phase", last ? end_ : "Running"}, {"accuracy", accuracy_}};
    if (last) {
      job["status"]["message"] = "as it happened";
    }
    Fill(job, "worker", "worker", 2);
    Fill(job, "data-server", "dataServer", 1);
    Fill(job, "parameter-server", "parameterServer", 2);
    EXPECT_TRUE(rig_.client.Update(kube::kTrainingJobs, job, "status").ok());
  }

  // As their nodes do.
  void EndDeletedPods() {
    const std::vector<Json> pods = *rig_.client.List(kube::kPods, {.ns = "training"});
    for (const Json& pod : pods) {
      if (pod["metadata"].contains("deletionTimestamp")) {
        EXPECT_TRUE(
            rig_.client
                .Delete(kube::kPods, kube::KeyOf(pod), {.grace_period = std::chrono::seconds(0)})
                .ok());
      }
    }
  }

  // Makes the pods that are missing, and says so in the status.
  void Fill(Json& job, const std::string& role, const std::string& field, int count) {
    const std::vector<Json> pods = *rig_.client.List(kube::kPods, {.ns = "training"});
    for (int slot = 0; slot < count; ++slot) {
      const bool there = std::ranges::any_of(pods, [&](const Json& pod) {
        return pod["metadata"]["labels"][kube::kRoleLabel] == role &&
               pod["metadata"]["labels"][kube::kSlotLabel] == std::to_string(slot);
      });
      if (!there) {
        rig_.PutOwned(kube::kPods, ThePod(role, slot, ++generations_[role + std::to_string(slot)]));
        started_[role] += 1;
      }
    }
    job["status"]["roles"][field] = {
        {"desired", count}, {"ready", count}, {"restarts", started_[role] - count}};
  }

  Rig rig_;
  kube::Cancellation cancellation_;
  int first_wait_ = 3;
  double accuracy_ = 0.9;
  std::string end_ = "Succeeded";
  std::map<std::string, int> generations_;
  std::map<std::string, int> started_;
  ActingSleeper sleeper_;
};

TEST_F(CheckTest, EachRoleLosesAPodAndTheJobIsCleanedUp) {
  const auto code = Check();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, cli::kOk);
  EXPECT_THAT(
      rig_.printed,
      ContainsRegex("^job adamant-check-[0-9a-f]{8} in namespace training\n"
                    "trains after 0.3 s\n"
                    "worker-0 deleted: another pod after 0.1 s, joined after 0.1 s\n"
                    "data-server-0 deleted: another pod after 0.1 s, joined after 0.1 s\n"
                    "parameter-server-0 deleted: another pod after 0.1 s, joined after 0.1 s\n"
                    "succeeded, top-1 90.0 %\njob deleted\n$"));
  EXPECT_TRUE(Jobs().empty());
}

TEST_F(CheckTest, AJobThatIsKeptStays) {
  EXPECT_EQ(*Check(true), cli::kOk);
  EXPECT_THAT(rig_.printed,
              HasSubstr("the job stays; delete it with kubectl delete trainingjob -n training "));
  EXPECT_EQ(Jobs().size(), 1u);
}

TEST_F(CheckTest, WhereNobodyLeadsItEndsInTimeAndSaysSo) {
  first_wait_ = kDoesNothing;
  EXPECT_EQ(*Check(), cli::kJobFailed);
  EXPECT_THAT(rig_.printed,
              HasSubstr("after 20 s training is still waited for; the job is not looked at by any "
                        "operator\n"));
  EXPECT_TRUE(Jobs().empty());
}

TEST_F(CheckTest, AJobThatFailsIsToldWithItsReason) {
  end_ = "Failed";
  EXPECT_EQ(*Check(), cli::kJobFailed);
  EXPECT_THAT(
      rig_.printed,
      HasSubstr("the end of the job is still waited for; the job is Failed: as it happened"));
}

TEST_F(CheckTest, AJobThatHasNotLearnedIsNoSuccess) {
  accuracy_ = 0.1;
  EXPECT_EQ(*Check(), cli::kJobFailed);
  EXPECT_THAT(rig_.printed, HasSubstr("classifies only 10.0 % right; expected are 80 %"));
}

TEST_F(CheckTest, AJobThatMayNotBeMadeIsNotCleanedUp) {
  rig_.api.SetFaults([](const kube::HttpRequest& request) {
    using Fault = kube::MemoryApiServer::Fault;
    return request.method == "POST" ? Fault::kInvalid : Fault::kNone;
  });
  EXPECT_TRUE(absl::IsInvalidArgument(Check().status()));
  EXPECT_EQ(rig_.printed, "");
}

TEST_F(CheckTest, WhatTheUserStopsIsCleanedUp) {
  cancellation_.Cancel();
  EXPECT_EQ(ExitCodeOf(Check().status()), cli::kInterrupted);
  EXPECT_TRUE(Jobs().empty());
}

}  // namespace
}  // namespace adamant::kubectl
