#include "operator/core/job/process_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operator/core/processes/restart_policy.h"
#include "operator/core/processes/worker_scaler.h"
#include "tests/unit/operator/core/job/job_parts.h"

namespace adamant::controller {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Liveness = ProcessTable::Liveness;

class ProcessLossesTest : public JobParts {
 protected:
  static ProcessExited EndOf(SlotId id) {
    return {.id = id, .generation = 1, .how = "exited with code 1"};
  }
  static ProcessExited LossOfNode(SlotId id) {
    return {.id = id,
            .generation = 1,
            .how = "is given up",
            .proved = false,
            .cause = LossCause::kNodeLost};
  }

  std::vector<Action> Exit(const ProcessExited& event) {
    losses_.OnExited(event, now_);
    return Take();
  }
  std::vector<Action> LoseSilent() {
    losses_.LoseSilent(now_);
    return Take();
  }

  // The job needs one worker less.
  void DismissWorker1() {
    settings_.workers = 1;
    WorkerScaler(settings_, processes_).DismissWorkers(now_);
    Take();
  }

  static auto IsLost(const std::string& text) {
    return testing::AllOf(Field(&Note::kind, Note::Kind::kLost), Field(&Note::text, text));
  }

  // A controller that did not find worker 0 has asked for another; the first one joins again.
  void ReplaceAndFindWorker0() {
    BeginTraining();
    processes_.Retire(processes_.At(kWorker0));
    processes_.Record(kWorker0).uid = "first";
    starter_.StartRole(Role::kWorker, {{{kWorker1, 1}}}, now_);
    Join again = JoinOf(kWorker0, "first");
    again.incarnation = 1;
    registration_.OnJoin(ConnectionOf(kWorker0), again, now_);
    Take();
    ASSERT_EQ(processes_.GenerationOf(kWorker0), 2u);
    ASSERT_EQ(LivenessOf(kWorker0), Liveness::kRunning);
  }

  [[nodiscard]] Liveness LivenessOf(SlotId id) const { return processes_.At(id).liveness; }

  RestartPolicy restarts_{settings_, state_, outbox_, processes_};
  ProcessLosses losses_{settings_,
                        state_,
                        processes_,
                        starter_,
                        restarts_,
                        silence_,
                        placement_,
                        training_,
                        outcome_};
};

// --- Processes that have ended

TEST_F(ProcessLossesTest, WhatHasEndedIsLostAndStartsAgainWithinTheBudget) {
  BeginTraining();
  EXPECT_THAT(Pick<Note>(Exit(EndOf(kWorker0))), Contains(IsLost("worker-0 exited with code 1")));
  EXPECT_EQ(LivenessOf(kWorker0), Liveness::kWaiting);
  EXPECT_EQ(state_.restarts, 1u);
  EXPECT_FALSE(outcome_.IsDecided());
}

TEST_F(ProcessLossesTest, ALossBeyondTheBudgetFailsTheJob) {
  BeginTraining();
  settings_.restart_limit = 0;
  Exit(EndOf(kWorker0));
  EXPECT_EQ(state_.phase, Phase::kFailed);
  EXPECT_EQ(state_.end, EndKind::kOutOfRestarts);
}

TEST_F(ProcessLossesTest, TheOthersAreToldWhoIsLeft) {
  BeginTraining();
  const auto views = Sent<Membership>(Exit(EndOf(kWorker0)));
  ASSERT_THAT(views, SizeIs(5));
  EXPECT_THAT(views[0].second.members, Not(Contains(Field(&Member::id, kWorker0))));
  EXPECT_THAT(views[0].second.members, SizeIs(5));
}

TEST_F(ProcessLossesTest, WhatWasExpectedOfAProcessEndsWithIt) {
  BeginTraining();
  training_.OnAlarm(kServer0, "disk full", now_);
  Exit(EndOf(kServer0));
  EXPECT_EQ(training_.alarms().AlarmOf(kServer0), "");
}

TEST_F(ProcessLossesTest, AnEndThatIsToldAgainCountsOnce) {
  BeginTraining();
  Exit(EndOf(kWorker0));
  EXPECT_THAT(Exit(EndOf(kWorker0)), IsEmpty());
  EXPECT_EQ(state_.restarts, 1u);
}

TEST_F(ProcessLossesTest, TheEndOfAnEarlierProcessOrOfNoneOfTheJobSaysNothing) {
  BeginTraining();
  ProcessExited earlier = EndOf(kServer0);
  earlier.generation = 0;
  EXPECT_THAT(Exit(earlier), IsEmpty());
  EXPECT_THAT(Exit(EndOf({Role::kWorker, 7})), IsEmpty());
  EXPECT_EQ(LivenessOf(kServer0), Liveness::kRunning);
}

TEST_F(ProcessLossesTest, AServerCountsAsDeadOnceItsEndIsProved) {
  BeginTraining();
  ProcessExited event = EndOf(kServer0);
  event.proved = false;
  Exit(event);
  EXPECT_THAT(state_.dead, IsEmpty());
  event.proved = true;
  Exit(event);
  EXPECT_THAT(state_.dead, ElementsAre(ServerId{.slot = 0, .incarnation = 1}));
}

TEST_F(ProcessLossesTest, OnceTheJobHasEndedAnEndIsNoLoss) {
  BeginTraining();
  outcome_.End(Phase::kSuspended, "for a while");
  EXPECT_THAT(Pick<Note>(Exit(EndOf(kWorker0))), IsEmpty());
  EXPECT_EQ(LivenessOf(kWorker0), Liveness::kAbsent);
  EXPECT_EQ(state_.restarts, 0u);
}

TEST_F(ProcessLossesTest, AWorkerThatWasOneTooManyIsNoLoss) {
  BeginTraining();
  DismissWorker1();
  const auto actions = Exit(EndOf(kWorker1));
  EXPECT_THAT(Pick<Note>(actions), IsEmpty());
  EXPECT_THAT(Sent<Membership>(actions), SizeIs(5));
  EXPECT_EQ(LivenessOf(kWorker1), Liveness::kAbsent);
  EXPECT_EQ(state_.restarts, 0u);
}

TEST_F(ProcessLossesTest, WhatCannotRunFailsTheJobUnlessItHasRunBefore) {
  ProcessExited event = EndOf(kWorker0);
  event.cannot_run = true;
  JoinAll();
  Exit(event);
  EXPECT_FALSE(outcome_.IsDecided()) << "others may give back what it lacks";
  event.id = kWorker1;
  processes_.At(kWorker1).has_run = false;
  Exit(event);
  EXPECT_EQ(state_.phase, Phase::kFailed);
}

// --- Volumes

TEST_F(ProcessLossesTest, AServerLeavesTheVolumeThatIsLostWithItsNodeUnlessABucketNeedsIt) {
  JoinAll();
  Exit(LossOfNode(kServer0));
  EXPECT_EQ(processes_.VolumeOf(kServer0), 2u);
  Exit(LossOfNode(kServer0));
  EXPECT_EQ(processes_.VolumeOf(kServer0), 2u) << "once";
}

TEST_F(ProcessLossesTest, AServerKeepsAVolumeThatABucketNeedsUnlessItWasDeleted) {
  BeginTraining();
  Exit(LossOfNode(kServer0));
  EXPECT_EQ(processes_.VolumeOf(kServer0), 1u);
  ProcessExited deleted = LossOfNode(kServer1);
  deleted.volume_deleted = true;
  Exit(deleted);
  EXPECT_EQ(processes_.VolumeOf(kServer1), 2u);
}

TEST_F(ProcessLossesTest, AServerThatMovesLeavesItsVolumeAndOneThatJustEndsDoesNot) {
  JoinAll();
  ProcessExited event = EndOf(kServer0);
  event.moves = true;
  Exit(event);
  EXPECT_EQ(processes_.VolumeOf(kServer0), 2u);
  Exit(EndOf(kServer1));
  EXPECT_EQ(processes_.VolumeOf(kServer1), 1u);
}

TEST_F(ProcessLossesTest, InAJobThatHasEndedOrGoesBackVolumesStay) {
  JoinAll();
  state_.recovery.going_back = true;
  Exit(LossOfNode(kServer0));
  EXPECT_EQ(processes_.VolumeOf(kServer0), 1u);
  state_.recovery.going_back = false;
  outcome_.End(Phase::kSuspended, "for a while");
  Exit(LossOfNode(kServer1));
  EXPECT_EQ(processes_.VolumeOf(kServer1), 1u);
}

// --- Processes that are silent

TEST_F(ProcessLossesTest, WhoIsSilentIsKilledAndJudgedWhenItHasEnded) {
  BeginTraining();
  now_ += settings_.silence_timeout;
  HearAllBut({kWorker0});
  const auto actions = LoseSilent();
  EXPECT_THAT(Pick<KillProcess>(actions), ElementsAre(Field(&KillProcess::id, kWorker0)));
  EXPECT_THAT(Pick<Note>(actions), ElementsAre(IsLost("worker-0 was silent for 10 s")));
  EXPECT_EQ(state_.restarts, 0u);
  Exit(EndOf(kWorker0));
  EXPECT_EQ(state_.restarts, 1u);
}

TEST_F(ProcessLossesTest, WhyItWasSilentIsKnownOnceItsNodeIsLost) {
  BeginTraining();
  now_ += settings_.silence_timeout;
  HearAllBut({kWorker0});
  LoseSilent();
  EXPECT_THAT(Pick<Note>(Exit(LossOfNode(kWorker0))),
              ElementsAre(Field(&Note::text, HasSubstr("does not count"))));
  EXPECT_EQ(state_.restarts, 0u);
}

TEST_F(ProcessLossesTest, WhoHasNotJoinedInTimeIsKilled) {
  now_ += settings_.join_timeout;
  const auto actions = LoseSilent();
  EXPECT_THAT(Pick<KillProcess>(actions), SizeIs(6));
  EXPECT_THAT(Pick<Note>(actions), Contains(IsLost("worker-1 did not join within 60 s")));
}

TEST_F(ProcessLossesTest, TheNextProcessIsWaitedForWhereAnEarlierOneThatFilledItsSlotIsSilent) {
  ReplaceAndFindWorker0();
  now_ += settings_.silence_timeout;
  HearAllBut({kWorker0});
  const auto actions = LoseSilent();
  EXPECT_THAT(Pick<KillProcess>(actions), IsEmpty());
  EXPECT_THAT(Pick<Note>(actions), ElementsAre(IsLost("worker-0 was silent for 10 s")));
  EXPECT_THAT(Sent<Membership>(actions), Not(IsEmpty()));
  EXPECT_EQ(LivenessOf(kWorker0), Liveness::kStarting);
  EXPECT_FALSE(processes_.At(kWorker0).loss.has_value());
  now_ += settings_.join_timeout;
  HearAllBut({kWorker0});
  EXPECT_THAT(Pick<KillProcess>(LoseSilent()), ElementsAre(Field(&KillProcess::generation, 2u)));
  EXPECT_EQ(LivenessOf(kWorker0), Liveness::kWaiting);
}

TEST_F(ProcessLossesTest, AWorkerThatDoesNotLeaveInItsTimeIsKilledAndIsNoLoss) {
  BeginTraining();
  DismissWorker1();
  now_ += WorkerScaler::kLeaveTimeout;
  HearAllBut({});
  const auto actions = LoseSilent();
  EXPECT_THAT(Pick<KillProcess>(actions), ElementsAre(Field(&KillProcess::id, kWorker1)));
  EXPECT_THAT(Pick<Note>(actions), IsEmpty());
  EXPECT_EQ(LivenessOf(kWorker1), Liveness::kAbsent);
}

TEST_F(ProcessLossesTest, OnceTheJobHasEndedNobodyIsKilledForSilence) {
  BeginTraining();
  outcome_.End(Phase::kSuspended, "for a while");
  now_ += settings_.silence_timeout;
  EXPECT_THAT(Pick<KillProcess>(LoseSilent()), IsEmpty());
}

// --- Processes that hang

TEST_F(ProcessLossesTest, WhoIsBusyWithOneThingForTooLongIsKilled) {
  BeginTraining();
  losses_.LoseIfHung(processes_.At(kServer0), 119.9, now_);
  EXPECT_THAT(Take(), IsEmpty());
  losses_.LoseIfHung(processes_.At(kServer0), 120, now_);
  const auto actions = Take();
  EXPECT_THAT(Pick<KillProcess>(actions), ElementsAre(Field(&KillProcess::id, kServer0)));
  EXPECT_THAT(Pick<Note>(actions),
              Contains(IsLost("parameter-server-0 made no progress for 120 s")));
  EXPECT_EQ(LivenessOf(kServer0), Liveness::kWaiting);
}

TEST_F(ProcessLossesTest, AWorkerThatIsToLeaveMayBeBusyInItsTime) {
  BeginTraining();
  DismissWorker1();
  losses_.LoseIfHung(processes_.At(kWorker1), 120, now_);
  EXPECT_THAT(Take(), IsEmpty());
}

}  // namespace
}  // namespace adamant::controller
