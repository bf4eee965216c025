#include "operator/cli/kubectl/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "operator/cli/console/exit_codes.h"
#include "operator/cli/kubectl/cluster/read_objects.h"
#include "operator/cli/kubectl/cluster/status_text.h"
#include "tests/unit/operator/cli/kubectl/job_rig.h"

namespace adamant::kubectl {
namespace {

using testing::HasSubstr;
using testing::Not;

class CommandsTest : public testing::Test {
 protected:
  CommandsTest() : session_(rig_.NewSession()) {}

  template <class Flags>
  static Flags Of(const std::string& job) {
    Flags flags;
    flags.target.job = job;
    return flags;
  }

  Rig rig_;
  Session session_;
};

TEST_F(CommandsTest, AMisspeltJobIsAnsweredWithTheNameThatIsNear) {
  rig_.PutJob("Running");
  const auto shown = ShowStatus(session_, Of<StatusFlags>("mnsit"));
  EXPECT_EQ(std::string(shown.status().message()),
            R"(there is no job "mnsit" in namespace training; did you mean mnist?)");
  EXPECT_EQ(ExitCodeOf(shown.status()), cli::kBadInput);
}

// Records keep a server that is gone until it may be left out.
TEST_F(CommandsTest, OnlyCopiesOnServersThatRunCount) {
  Json pending = Waiting(ThePod("parameter-server", 1, 2), "ContainerCreating", "");
  const Json bucket = Json::parse(R"({"epoch": 1, "generation": 1, "created": true,
      "primary": {"slot": 0, "incarnation": 1},
      "members": [{"slot": 0, "incarnation": 1}, {"slot": 1, "incarnation": 1}]})");
  StatusObjects objects;
  objects.job = TheJob("Starting");
  objects.pods = {ThePod("parameter-server", 0), pending};
  objects.shard_maps = {{{"buckets", Json::array({bucket, bucket})}}};
  EXPECT_THAT(StatusText(objects), HasSubstr("buckets      2: 2 with 1 copy; versions up to 1"));
  objects.pods[1] = ThePod("parameter-server", 1, 2);
  EXPECT_THAT(StatusText(objects), HasSubstr("2 with 2 copies"));
  objects.job = TheJob("Suspended");
  objects.pods.clear();
  EXPECT_THAT(StatusText(objects), HasSubstr("2 with 2 copies"));
}

TEST_F(CommandsTest, AnEmptyNamespaceIsSaidToBeEmpty) {
  EXPECT_THAT(std::string(ShowStatus(session_, Of<StatusFlags>("mnist")).status().message()),
              HasSubstr("nor any other; --namespace names another"));
}

TEST_F(CommandsTest, StatusShowsPodsClaimsAndConditions) {
  Json job = TheJob("Running");
  job["status"].update(
      {{"epoch", 2},
       {"epochs", 5},
       {"accuracy", 0.97},
       {"examplesPerSecond", 3000},
       {"message", "4 of 8 buckets have too few live copies"},
       {"roles", {{"worker", {{"restarts", 2}, {"restartCauses", {{"outOfMemory", 2}}}}}}},
       {"conditions",
        Json::array({{{"type", "Valid"},
                      {"status", "True"},
                      {"reason", "Accepted"},
                      {"message", ""},
                      {"lastTransitionTime", "1970-01-01T00:59:50Z"}}})}});
  rig_.job = rig_.Put(kube::kTrainingJobs, job);
  rig_.PutOwned(kube::kPods, Ended(ThePod("worker", 0, 2), 137, "OOMKilled"));
  rig_.PutOwned(kube::kPods, ThePod("worker", 0, 3));
  rig_.PutOwned(kube::kPersistentVolumeClaims,
                {{"metadata", {{"name", "mnist-output"}, {"namespace", "training"}}},
                 {"spec", {{"resources", {{"requests", {{"storage", "1Gi"}}}}}}}});
  ASSERT_EQ(*ShowStatus(session_, Of<StatusFlags>("mnist")), cli::kOk);
  EXPECT_THAT(rig_.printed, HasSubstr("mnist: Running\nepoch 2 of 5, top-1 97.00%, 0 restarts\n"));
  EXPECT_THAT(rig_.printed, HasSubstr("\n4 of 8 buckets have too few live copies\n"));
  EXPECT_THAT(rig_.printed, HasSubstr("restarts     worker 2 (2 OutOfMemory)\n"));
  EXPECT_THAT(rig_.printed, HasSubstr("Valid      True    10s    Accepted"));
  EXPECT_THAT(rig_.printed, HasSubstr("mnist-worker-0-2  worker-0  node1  OOMKilled  1 "));
  EXPECT_THAT(rig_.printed, HasSubstr("mnist-worker-0-3  worker-0  node1  Running    2 "));
  EXPECT_THAT(rig_.printed, HasSubstr("mnist-output  Pending  1Gi   -"));
}

TEST_F(CommandsTest, StatusAsJsonHasTheSame) {
  rig_.PutJob("Running");
  rig_.PutOwned(kube::kPods, ThePod("worker", 0));
  StatusFlags flags = Of<StatusFlags>("mnist");
  flags.json = true;
  ASSERT_EQ(*ShowStatus(session_, flags), cli::kOk);
  const Json json = Json::parse(rig_.printed);
  EXPECT_EQ(json["job"], "mnist");
  EXPECT_EQ(json["namespace"], "training");
  EXPECT_EQ(json["status"]["phase"], "Running");
  EXPECT_EQ(json["pods"][0]["role"], "worker-0");
  EXPECT_EQ(json["pods"][0]["state"], "Running");
  EXPECT_EQ(json["shards"]["buckets"], 0);
}

TEST_F(CommandsTest, AWatchedJobThatHasFailedEndsWithItsExitCode) {
  rig_.PutJob("Failed");
  StatusFlags flags = Of<StatusFlags>("mnist");
  flags.watch = true;
  EXPECT_EQ(*ShowStatus(session_, flags), cli::kJobFailed);
}

TEST_F(CommandsTest, AWatchEndsWhenTheUserWantsIt) {
  rig_.PutJob("Running");
  StatusFlags flags = Of<StatusFlags>("mnist");
  flags.watch = true;
  session_.cancellation.Cancel();
  EXPECT_EQ(ExitCodeOf(ShowStatus(session_, flags).status()), cli::kInterrupted);
}

TEST_F(CommandsTest, StatusSaysHowOldItIsAndThatNobodyLeads) {
  Json job = rig_.PutJob("Running");
  job["status"]["lastReportTime"] = "1970-01-01T00:59:30Z";
  ASSERT_TRUE(rig_.client.Update(kube::kTrainingJobs, job, "status").ok());
  ASSERT_EQ(*ShowStatus(session_, Of<StatusFlags>("mnist")), cli::kOk);
  EXPECT_THAT(rig_.printed,
              HasSubstr("reported     30s ago; no operator leads in namespace adamant-system: its "
                        "lease is not there\n"));
  Json lease = rig_.PutLease();
  ASSERT_EQ(*ShowStatus(session_, Of<StatusFlags>("mnist")), cli::kOk);
  EXPECT_THAT(rig_.printed, HasSubstr("reported     30s ago\n"));
  lease["spec"]["renewTime"] = "1970-01-01T00:59:20.000000Z";
  ASSERT_TRUE(rig_.client.Update(kube::kLeases, lease).ok());
  ASSERT_EQ(*ShowStatus(session_, Of<StatusFlags>("mnist")), cli::kOk);
  EXPECT_THAT(
      rig_.printed,
      HasSubstr(
          "reported     30s ago; no operator leads: its lease in namespace adamant-system was "
          "last renewed 40s ago\n"));
  ASSERT_EQ(*ShowExplanation(session_, Of<ExplainFlags>("mnist")), cli::kOk);
  EXPECT_THAT(rig_.printed, HasSubstr("this is as it was last told: no operator leads"));
}

TEST_F(CommandsTest, OperatorsAreFoundInWhateverNamespaceTheyLead) {
  rig_.PutJob("");
  rig_.PutLease("1970-01-01T00:50:00.000000Z");  // of an installation of before
  Json lease = rig_.PutLease("1970-01-01T00:59:20.000000Z", "training");
  ASSERT_EQ(*ShowExplanation(session_, Of<ExplainFlags>("mnist")), cli::kOk);
  EXPECT_THAT(rig_.printed, HasSubstr("its lease in namespace training was last renewed 40s ago"));
  EXPECT_THAT(rig_.printed, HasSubstr("kubectl -n training get pods"));
  rig_.printed.clear();
  lease["spec"]["renewTime"] = "1970-01-01T01:00:00.000000Z";
  ASSERT_TRUE(rig_.client.Update(kube::kLeases, lease).ok());
  ASSERT_EQ(*ShowExplanation(session_, Of<ExplainFlags>("mnist")), cli::kOk);
  EXPECT_THAT(rig_.printed, Not(HasSubstr("no operator leads")));
}

TEST_F(CommandsTest, AJobThatNobodyCanLookAtSaysSo) {
  rig_.PutJob("");
  ASSERT_EQ(*ShowStatus(session_, Of<StatusFlags>("mnist")), cli::kOk);
  EXPECT_EQ(rig_.printed,
            "mnist: no operator has looked at it yet; no operator leads in namespace "
            "adamant-system: its lease is not there\n");
}

TEST_F(CommandsTest, EventsAreInOrderAndOfThisJobOnly) {
  const Json job = rig_.PutJob("Running");
  const Json other = {{"metadata", {{"name", "mnist-2"}, {"uid", "other"}}}};
  const Json pod = {{"metadata", {{"name", "mnist-worker-0-1"}, {"uid", "gone"}}}};
  const Json of_other = {{"metadata", {{"name", "mnist-2-worker-0-1"}, {"uid", "gone2"}}}};
  rig_.Put(kube::kEvents, EventOf(pod, "Pod", "BackOff", "second", "2026-01-31T12:02:00Z"));
  rig_.Put(kube::kEvents, EventOf(job, "TrainingJob", "lost", "first", "2026-01-31T12:01:00Z"));
  rig_.Put(kube::kEvents, EventOf(other, "TrainingJob", "lost", "not this"));
  rig_.Put(kube::kEvents, EventOf(of_other, "Pod", "BackOff", "nor this"));
  ASSERT_EQ(*ShowEvents(session_, Of<EventsFlags>("mnist")), cli::kOk);
  EXPECT_EQ(rig_.printed,
            "2026-01-31T12:01:00   Warning  mnist  lost: first\n"
            "2026-01-31T12:02:00   Warning  mnist-worker-0-1  BackOff: second\n");
}

TEST_F(CommandsTest, ExplainReadsWhatItNeeds) {
  rig_.PutJob("Starting");
  rig_.PutOwned(kube::kPods, Waiting(ThePod("worker", 0), "ErrImagePull", "no such manifest"));
  ASSERT_EQ(*ShowExplanation(session_, Of<ExplainFlags>("mnist")), cli::kOk);
  EXPECT_THAT(rig_.printed, HasSubstr("does not get its image adamant:1 (ErrImagePull)"));
  EXPECT_THAT(rig_.printed, HasSubstr("not looked at, for lack of rights: nodes"));
}

TEST_F(CommandsTest, ACheckpointIsRequestedByAnAnnotationAndAwaited) {
  const Json job = rig_.PutJob("Running");
  rig_.PutLease();
  CheckpointFlags flags = Of<CheckpointFlags>("mnist");
  flags.timeout_seconds = 5;
  const auto taken = TakeCheckpoint(session_, flags);
  EXPECT_THAT(std::string(taken.status().message()),
              HasSubstr("no checkpoint is complete after 5 s"));
  const Json now = *rig_.client.Get(kube::kTrainingJobs, {"training", "mnist"});
  EXPECT_EQ(kube::StringAt(now, {"metadata", "annotations", kube::kCheckpointAnnotation}),
            "1970-01-01T01:00:00.000000Z");
}

TEST_F(CommandsTest, ACheckpointMadeForTheRequestIsTold) {
  Json job = TheJob("Running");
  job["status"]["checkpoint"] = {
      {"snapshot", 7}, {"epoch", 3}, {"request", "1970-01-01T01:00:00.000000Z"}};
  rig_.Put(kube::kTrainingJobs, job);
  rig_.PutLease();
  ASSERT_EQ(*TakeCheckpoint(session_, Of<CheckpointFlags>("mnist")), cli::kOk);
  EXPECT_EQ(rig_.printed, "checkpoint 7 of epoch 3\n");
}

TEST_F(CommandsTest, NobodyWaitsForACheckpointThatNobodyTakes) {
  Json job = rig_.PutJob("Running");
  const auto refusal = [this] {
    const auto taken = TakeCheckpoint(session_, Of<CheckpointFlags>("mnist"));
    return absl::IsFailedPrecondition(taken.status()) ? std::string(taken.status().message()) : "";
  };
  EXPECT_THAT(refusal(), HasSubstr("its lease is not there, so nobody takes a checkpoint"));
  job["status"]["lastReportTime"] = "1970-01-01T00:59:30Z";
  job = *rig_.client.Update(kube::kTrainingJobs, job, "status");
  EXPECT_EQ(refusal(), "") << "operators may be elsewhere";
  rig_.PutLease("1970-01-01T00:59:20.000000Z");
  EXPECT_THAT(refusal(),
              HasSubstr("no operator leads: its lease in namespace adamant-system was last "
                        "renewed"));
}

TEST_F(CommandsTest, AJobThatIsOverTakesNoCheckpoint) {
  rig_.PutJob("Succeeded");
  const auto taken = TakeCheckpoint(session_, Of<CheckpointFlags>("mnist"));
  EXPECT_EQ(std::string(taken.status().message()),
            "mnist is Succeeded, so there is nothing to be checkpointed; it has none");
}

TEST_F(CommandsTest, LogsOfAnUnknownProcessNameThoseThatAreNear) {
  rig_.PutJob("Running");
  rig_.PutOwned(kube::kPods, ThePod("worker", 0));
  LogsFlags flags = Of<LogsFlags>("mnist");
  flags.of = {"wroker-0"};
  EXPECT_THAT(std::string(ShowLogs(session_, flags).status().message()),
              HasSubstr("did you mean worker-0?"));
}

TEST_F(CommandsTest, LogsOfAnEarlierStartThatIsGoneSaySo) {
  rig_.PutJob("Running");
  rig_.PutOwned(kube::kPods, ThePod("worker", 0));
  LogsFlags flags = Of<LogsFlags>("mnist");
  flags.previous = true;
  EXPECT_THAT(std::string(ShowLogs(session_, flags).status().message()),
              HasSubstr("no pod of an earlier start"));
}

TEST(AdviceTest, ErrorsOfTheClusterSayWhatToDo) {
  EXPECT_THAT(Advised(absl::PermissionDeniedError("ann may not list pods")), HasSubstr("grants"));
  EXPECT_THAT(Advised(absl::UnavailableError("refused")), HasSubstr("--context"));
  EXPECT_EQ(Advised(absl::NotFoundError("no job")), "no job");
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("")), cli::kCannotRun);
}

TEST(StateOfTest, TellsWhatAPodDoes) {
  EXPECT_EQ(StateOf(ThePod("worker", 0)), "Running");
  EXPECT_EQ(StateOf(Ended(ThePod("worker", 0), 0, "Completed")), "Completed");
  EXPECT_EQ(StateOf(Ended(ThePod("worker", 0), 1)), "Exited 1");
  EXPECT_EQ(StateOf(Waiting(ThePod("worker", 0), "ContainerCreating", "")), "Creating");
  Json deleted = ThePod("worker", 0);
  deleted["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z";
  EXPECT_EQ(StateOf(deleted), "Terminating");
  EXPECT_EQ(StateOf(Json::object()), "Pending");
  const Json gated = {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "SchedulingGated"}};
  EXPECT_EQ(StateOf({{"status", {{"phase", "Pending"}, {"conditions", Json::array({gated})}}}}),
            "SchedulingGated");
}

}  // namespace
}  // namespace adamant::kubectl
