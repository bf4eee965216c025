#include "operator/kube/pods/reconcile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/operator/core/job/harness.h"

namespace adamant::kube {
namespace {

using controller::DataServerProgress;
using controller::Harness;
using controller::Heartbeat;
using controller::JobSettings;
using controller::kData0;
using controller::kData1;
using controller::KillProcess;
using controller::kServer0;
using controller::kServer1;
using controller::kWorker0;
using controller::LossCause;
using controller::OpenEpoch;
using controller::Phase;
using controller::Pick;
using controller::ProcessExited;
using controller::Sent;
using controller::ServerId;
using controller::SmallJob;
using controller::StartProcess;
using controller::Welcome;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr StartProcess kFirstOfSlot{kWorker0, 1};
constexpr StartProcess kSecondOfSlot{kWorker0, 2};

ObservedPod Pod(const StartProcess& process, ObservedPod::State state) {
  const std::string name = ToString(process.id) + "-" + std::to_string(process.generation);
  return {.process = process, .name = name, .uid = name + "-uid", .state = state};
}

DeletePod Removal(const ObservedPod& pod, bool at_once = false) {
  return {.name = pod.name, .uid = pod.uid, .at_once = at_once};
}

PodPlan Plan(const std::vector<StartProcess>& wanted, const std::vector<ObservedPod>& pods) {
  return Reconcile(wanted, pods);
}

TEST(ReconcileTest, WhatIsMissingIsCreatedAndWhatIsThereIsLeftAlone) {
  EXPECT_THAT(Plan({kFirstOfSlot}, {}).create, ElementsAre(kFirstOfSlot));
  for (const ObservedPod::State state :
       {ObservedPod::State::kPending, ObservedPod::State::kRunning}) {
    const PodPlan plan = Plan({kFirstOfSlot}, {Pod(kFirstOfSlot, state)});
    EXPECT_THAT(plan.create, IsEmpty());
    EXPECT_THAT(plan.remove, IsEmpty());
    EXPECT_THAT(plan.exited, IsEmpty());
  }
}

TEST(ReconcileTest, WhatIsNotWantedIsRemovedOnce) {
  ObservedPod old = Pod(kFirstOfSlot, ObservedPod::State::kRunning);
  EXPECT_THAT(Plan({}, {old}).remove, ElementsAre(Removal(old)));
  old.deleting = true;
  EXPECT_THAT(Plan({}, {old}).remove, IsEmpty());
}

TEST(ReconcileTest, APodThatIsShutOutOfTheNodeOfItsVolumeIsGivenUpAfterAWhile) {
  const NodeTimeouts timeouts{.cordoned = seconds(60)};
  ObservedPod pod = Pod(kFirstOfSlot, ObservedPod::State::kPending);
  pod.shut_out = seconds(45);
  PodPlan plan = Reconcile(std::vector{kFirstOfSlot}, std::vector{pod}, timeouts);
  EXPECT_THAT(plan.exited, IsEmpty());
  EXPECT_THAT(plan.remove, IsEmpty());
  EXPECT_EQ(plan.again_in, seconds(15));
  pod.shut_out = seconds(60);
  plan = Reconcile(std::vector{kFirstOfSlot}, std::vector{pod}, timeouts);
  ASSERT_THAT(plan.exited, SizeIs(1));
  EXPECT_EQ(plan.exited[0].cause, LossCause::kNodeLost);
  EXPECT_FALSE(plan.exited[0].proved);
  EXPECT_THAT(plan.remove, ElementsAre(Removal(pod)));
}

TEST(ReconcileTest, APodThatMovesIsNoLossThatAnybodyJudges) {
  ObservedPod pod = Pod(kFirstOfSlot, ObservedPod::State::kGone);
  pod.moves = true;
  const PodPlan plan = Plan({kFirstOfSlot}, {pod});
  ASSERT_THAT(plan.exited, SizeIs(1));
  EXPECT_TRUE(plan.exited[0].moves);
  EXPECT_EQ(plan.exited[0].how, "moves to another node");
}

TEST(ReconcileTest, AnEndedContainerIsAProvedDeathThatCounts) {
  ObservedPod pod = Pod(kFirstOfSlot, ObservedPod::State::kEnded);
  pod.how = "exited with code 2 (Error)";
  pod.exit_code = 2;
  pod.bad_configuration = true;
  const PodPlan plan = Plan({kFirstOfSlot}, {pod});
  ASSERT_THAT(plan.exited, SizeIs(1));
  EXPECT_EQ(plan.exited[0].id, kWorker0);
  EXPECT_EQ(plan.exited[0].generation, 1u);
  EXPECT_EQ(plan.exited[0].how, pod.how);
  EXPECT_TRUE(plan.exited[0].proved);
  EXPECT_EQ(plan.exited[0].cause, LossCause::kExit);
  EXPECT_EQ(plan.exited[0].exit_code, 2);
  EXPECT_TRUE(plan.exited[0].bad_configuration);
  EXPECT_THAT(plan.create, IsEmpty()) << "the controller starts the next generation";
  EXPECT_THAT(plan.remove, IsEmpty()) << "its logs are there";
}

TEST(ReconcileTest, ADisruptionDoesNotCount) {
  ObservedPod pod = Pod(kFirstOfSlot, ObservedPod::State::kEnded);
  pod.bad_configuration = true;
  pod.disrupted = true;
  const PodPlan plan = Plan({kFirstOfSlot}, {pod});
  ASSERT_THAT(plan.exited, SizeIs(1));
  EXPECT_TRUE(plan.exited[0].proved);
  EXPECT_EQ(plan.exited[0].cause, LossCause::kDisruption);
  EXPECT_FALSE(plan.exited[0].bad_configuration);
}

TEST(ReconcileTest, ADeletedObjectIsNoProofOfDeath) {
  const PodPlan plan = Plan({kFirstOfSlot}, {Pod(kFirstOfSlot, ObservedPod::State::kGone)});
  ASSERT_THAT(plan.exited, SizeIs(1));
  EXPECT_FALSE(plan.exited[0].proved);
  EXPECT_EQ(plan.exited[0].cause, LossCause::kDisruption);
  EXPECT_THAT(plan.create, IsEmpty());
}

constexpr NodeTimeouts kTimeout{.unreachable = seconds(20), .force_delete = seconds(30)};

ObservedPod OnLostNode(std::chrono::milliseconds away) {
  ObservedPod pod = Pod(kFirstOfSlot, ObservedPod::State::kRunning);
  pod.node_away = away;
  return pod;
}

TEST(ReconcileLostNodeTest, UntilItsTimeIsOverNothingHappensButThatItIsLookedAtAgain) {
  for (const auto away : {seconds(0), seconds(19)}) {
    const PodPlan plan =
        Reconcile(std::vector{kFirstOfSlot}, std::vector{OnLostNode(away)}, kTimeout);
    EXPECT_THAT(plan.create, IsEmpty());
    EXPECT_THAT(plan.remove, IsEmpty());
    EXPECT_THAT(plan.exited, IsEmpty());
    EXPECT_EQ(plan.again_in, seconds(20) - away);
  }
}

TEST(ReconcileLostNodeTest, ThenTheProcessIsGivenUpWithoutProofAndThePodGoesWhenTheNodeIsBack) {
  ObservedPod pod = OnLostNode(seconds(20));
  const PodPlan plan = Reconcile(std::vector{kFirstOfSlot}, std::vector{pod}, kTimeout);
  ASSERT_THAT(plan.exited, SizeIs(1));
  EXPECT_EQ(plan.exited[0].generation, 1u);
  EXPECT_EQ(plan.exited[0].how, "is given up: its node has been away for 20 s");
  EXPECT_FALSE(plan.exited[0].proved);
  EXPECT_EQ(plan.exited[0].cause, LossCause::kNodeLost);
  EXPECT_THAT(plan.remove, ElementsAre(Removal(pod)));
  EXPECT_EQ(plan.again_in, seconds(30));
  pod.deleting = true;
  EXPECT_THAT(Reconcile(std::vector{kSecondOfSlot}, std::vector{pod}, kTimeout).remove, IsEmpty());
}

TEST(ReconcileLostNodeTest, AfterTheSecondTimeThePodIsDeletedByForceThoughItsDeletionWasAskedFor) {
  ObservedPod pod = OnLostNode(seconds(50));
  pod.deleting = true;
  const PodPlan plan = Reconcile(std::vector{kSecondOfSlot}, std::vector{pod}, kTimeout);
  EXPECT_THAT(plan.remove, ElementsAre(Removal(pod, true)));
  EXPECT_THAT(plan.create, ElementsAre(kSecondOfSlot));
  EXPECT_EQ(plan.again_in, std::nullopt);
}

TEST(ReconcileLostNodeTest, WithoutASecondTimeItIsDeletedByForceAtOnce) {
  const ObservedPod pod = OnLostNode(seconds(20));
  const NodeTimeouts timeouts{.unreachable = seconds(20), .force_delete = seconds(0)};
  const PodPlan plan = Reconcile(std::vector{kFirstOfSlot}, std::vector{pod}, timeouts);
  EXPECT_THAT(plan.remove, ElementsAre(Removal(pod, true)));
  EXPECT_THAT(plan.exited, SizeIs(1));
}

TEST(ReconcileLostNodeTest, ANodeThatIsOutOfServiceProvesTheDeathsOfItsProcesses) {
  ObservedPod pod = Pod(kFirstOfSlot, ObservedPod::State::kRunning);  // its node need not be away
  pod.node_out_of_service = true;
  const PodPlan plan = Reconcile(std::vector{kFirstOfSlot}, std::vector{pod}, kTimeout);
  ASSERT_THAT(plan.exited, SizeIs(1));
  EXPECT_TRUE(plan.exited[0].proved);
  EXPECT_EQ(plan.exited[0].cause, LossCause::kNodeLost);
  EXPECT_THAT(plan.remove, ElementsAre(Removal(pod, true)));
}

TEST(ReconcileLostNodeTest, APodThatHasEndedBeforeKeepsItsOwnEnd) {
  ObservedPod pod = Pod(kFirstOfSlot, ObservedPod::State::kEnded);
  pod.node_away = seconds(100);
  const PodPlan plan = Reconcile({}, std::vector{pod}, kTimeout);
  ASSERT_THAT(plan.exited, SizeIs(1));
  EXPECT_EQ(plan.exited[0].cause, LossCause::kExit);
  EXPECT_TRUE(plan.exited[0].proved);
  EXPECT_THAT(plan.remove, IsEmpty());
}

TEST(ReconcileTest, APodWhoseClaimWasDeletedIsGivenUpForOneOnAnotherVolume) {
  ObservedPod pod = Pod(kFirstOfSlot, ObservedPod::State::kPending);
  pod.deleted_claim = "mnist-parameter-server-0-1";
  const PodPlan plan = Plan({kFirstOfSlot}, {pod});
  ASSERT_THAT(plan.exited, SizeIs(1));
  EXPECT_EQ(plan.exited[0].how,
            "begins anew on another volume: its claim mnist-parameter-server-0-1 was deleted");
  EXPECT_TRUE(plan.exited[0].volume_deleted);
  EXPECT_FALSE(plan.exited[0].proved);
  EXPECT_THAT(plan.remove, ElementsAre(DeletePod{.name = pod.name, .uid = pod.uid}));
}

TEST(ReconcileTest, OnlyTheNewestEndedPodOfASlotIsKept) {
  const ObservedPod first = Pod(kFirstOfSlot, ObservedPod::State::kEnded);
  const ObservedPod second = Pod(kSecondOfSlot, ObservedPod::State::kRunning);
  EXPECT_THAT(Plan({kSecondOfSlot}, {first, second}).remove, IsEmpty());
  const ObservedPod ended = Pod(kSecondOfSlot, ObservedPod::State::kEnded);
  EXPECT_THAT(Plan({}, {first, ended}).remove, ElementsAre(Removal(first)));
}

TEST(AdoptTest, ProcessesThatLiveAreExpectedToJoinAgain) {
  Harness job;
  job.Begin();
  job.JoinAll();
  const auto wanted = job.controller().Wanted();
  EXPECT_THAT(wanted, SizeIs(6));
  const auto actions = job.RestartController({.running = wanted});
  EXPECT_THAT(Pick<StartProcess>(actions), IsEmpty());
  EXPECT_EQ(job.controller().Wanted(), wanted);
  EXPECT_THAT(Sent<Welcome>(job.Join(kWorker0, "worker-0", 1)), SizeIs(1));
  EXPECT_EQ(job.state().restarts, 0u);
}

TEST(AdoptTest, OnlyTheLastProcessOfASlotIsAdopted) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Exit(kWorker0);
  job.Pass(std::chrono::seconds(2), {kWorker0});
  ASSERT_EQ(job.GenerationOf(kWorker0), 2u);
  auto running = job.controller().Wanted();
  for (StartProcess& process : running) {
    process.generation = 1;
  }
  const auto started = Pick<StartProcess>(job.RestartController({.running = running}));
  EXPECT_THAT(started, ElementsAre(StartProcess{kWorker0, 3}));
}

TEST(AdoptTest, OneThatDoesNotComeBackIsReplaced) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.RestartController({.running = job.controller().Wanted()});
  EXPECT_THAT(Pick<KillProcess>(job.Pass(SmallJob().join_timeout)), SizeIs(6));
}

// The last controller could not store what it did, and did it nevertheless.
TEST(AdoptTest, TheEpochOfTheDataServersIsGoneOnWith) {
  JobSettings settings = SmallJob();
  settings.epochs = 9;
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  job.RestartController({.running = job.controller().Wanted()});
  job.JoinAll();
  ASSERT_EQ(job.state().epoch, 1u);
  Heartbeat heartbeat;
  heartbeat.progress = DataServerProgress{.decided_epoch = 4};
  const auto actions = job.Tell(kData0, heartbeat);
  EXPECT_EQ(job.state().epoch, 4u);
  EXPECT_EQ(job.state().phase, Phase::kRunning);
  const auto opened = Sent<OpenEpoch>(actions);
  ASSERT_THAT(opened, SizeIs(2));
  EXPECT_EQ(opened[0].second.epoch, 4u);
  EXPECT_THAT(Sent<OpenEpoch>(job.Tell(kData1, heartbeat)), IsEmpty());
  heartbeat.progress = DataServerProgress{.decided_epoch = 10};
  job.Tell(kData0, heartbeat);
  EXPECT_EQ(job.state().epoch, 4u) << "the job has no tenth epoch";
  job.TrainAndEvaluate(50);
  EXPECT_EQ(job.state().epoch, 5u);
}

TEST(AdoptTest, SnapshotsOfAnEarlierControllerAreNotTakenForOurs) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.TrainAndEvaluate(50);
  const std::uint64_t before = job.state().last_snapshot;
  job.RestartController({.running = job.controller().Wanted()});
  EXPECT_GT(job.state().last_snapshot, before + 1000);
}

TEST(UncountedTest, APodThatWasEndedFromOutsideIsReplacedAtOnceAndCostsNothing) {
  JobSettings settings = SmallJob();
  settings.restart_limit = 0;
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  const auto actions = job.Handle(ProcessExited{.id = kWorker0,
                                                .generation = 1,
                                                .how = "was evicted",
                                                .proved = false,
                                                .cause = LossCause::kDisruption});
  EXPECT_THAT(Pick<StartProcess>(actions), ElementsAre(StartProcess{kWorker0, 2}));
  EXPECT_EQ(job.state().restarts, 0u);
  EXPECT_EQ(job.state().phase, Phase::kRunning);
}

TEST(UncountedTest, WhatIsOnlyGivenUpIsNotTakenForDead) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Handle(ProcessExited{.id = kServer0, .generation = 1, .how = "is lost", .proved = false});
  EXPECT_THAT(job.state().dead, IsEmpty());
  job.Handle(ProcessExited{.id = kServer1, .generation = 1, .how = "was killed"});
  EXPECT_THAT(job.state().dead, ElementsAre(ServerId{1, 1}));
}

}  // namespace
}  // namespace adamant::kube
