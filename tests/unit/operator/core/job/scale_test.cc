#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr SlotId kWorker2{Role::kWorker, 2};
constexpr SlotId kWorker3{Role::kWorker, 3};

// A job whose number of workers changes while it runs.
class ScaleTest : public testing::Test {
 protected:
  ScaleTest() {
    job_.Begin();
    job_.JoinAll();
  }

  void Add(SlotId worker, const std::string& uid) {
    job_.Join(worker, uid);
    job_.Tell(worker, Heartbeat{});
  }

  [[nodiscard]] std::vector<std::string> Workers() const {
    std::vector<std::string> states;
    for (const auto& member : job_.controller().Report().members) {
      if (member.id.role == Role::kWorker) {
        states.push_back(member.state);
      }
    }
    return states;
  }

  [[nodiscard]] std::vector<StartProcess> WantedWorkers() const {
    auto wanted = job_.controller().Wanted();
    std::erase_if(wanted, [](const StartProcess& p) { return p.id.role != Role::kWorker; });
    return wanted;
  }

  Harness job_;
};

TEST_F(ScaleTest, NewWorkersStartAtOnceAndJoinTheOpenEpoch) {
  EXPECT_THAT(Pick<StartProcess>(job_.Scale(4)),
              ElementsAre(StartProcess{kWorker2, 1}, StartProcess{kWorker3, 1}));
  Add(kWorker2, "two");
  Add(kWorker3, "three");
  EXPECT_THAT(Workers(), ElementsAre("Running", "Running", "Running", "Running"));
  EXPECT_EQ(job_.state().restarts, 0u);
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
}

TEST_F(ScaleTest, TheSameNumberChangesNothing) { EXPECT_THAT(job_.Scale(2), IsEmpty()); }

TEST_F(ScaleTest, AWorkerThatIsOneTooManyIsToldToStopAndNotReplaced) {
  auto actions = job_.Scale(1);
  EXPECT_THAT(
      Sent<Stop>(actions),
      ElementsAre(Field(&std::pair<ConnectionId, Stop>::first, job_.ConnectionOf(kWorker1))));
  EXPECT_THAT(Pick<KillProcess>(actions), IsEmpty());
  EXPECT_THAT(Workers(), ElementsAre("Running", "Leaving"));
  EXPECT_THAT(WantedWorkers(), SizeIs(2)) << "it hands over what it did";
  const auto published = Sent<Membership>(job_.Exit(kWorker1, "exited with code 0"));
  ASSERT_THAT(published, testing::Not(IsEmpty()));
  EXPECT_THAT(published.back().second.members,
              testing::Not(Contains(Field(&Member::id, kWorker1))));
  EXPECT_THAT(Workers(), ElementsAre("Running"));
  EXPECT_THAT(WantedWorkers(), ElementsAre(StartProcess{kWorker0, 1}));
  EXPECT_THAT(Pick<StartProcess>(job_.Pass(seconds(5))), IsEmpty());
  EXPECT_EQ(job_.state().restarts, 0u);
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
}

TEST_F(ScaleTest, OneThatDoesNotLeaveInTimeIsKilled) {
  job_.Scale(1);
  EXPECT_THAT(Pick<KillProcess>(job_.Pass(WorkerScaler::kLeaveTimeout - seconds(1))), IsEmpty());
  const auto killed = Pick<KillProcess>(job_.Pass(seconds(1)));
  EXPECT_THAT(killed, ElementsAre(Field(&KillProcess::id, kWorker1)));
  job_.Exit(kWorker1);
  EXPECT_THAT(Pick<StartProcess>(job_.Pass(seconds(5))), IsEmpty());
  EXPECT_EQ(job_.state().restarts, 0u);
}

TEST_F(ScaleTest, OneThatHasNotJoinedYetIsKilledAndRefusedWhenItComesAllTheSame) {
  job_.Scale(3);
  EXPECT_THAT(Pick<KillProcess>(job_.Scale(2)), ElementsAre(Field(&KillProcess::id, kWorker2)));
  EXPECT_THAT(WantedWorkers(), SizeIs(2));
  EXPECT_THAT(Sent<Refused>(job_.Join(kWorker2, "late")), SizeIs(1));
}

TEST_F(ScaleTest, AWorkerIsWantedAgainBeforeItHasLeft) {
  job_.Scale(1);
  EXPECT_THAT(Pick<StartProcess>(job_.Scale(2)), IsEmpty()) << "the old one is there";
  EXPECT_THAT(Pick<StartProcess>(job_.Exit(kWorker1, "exited with code 0")),
              ElementsAre(StartProcess{kWorker1, 2}));
  Add(kWorker1, "again");
  EXPECT_EQ(job_.state().slots[SlotIndex(SmallJob(), kWorker1)].incarnation, 2u)
      << "what the first one pushed is not mistaken for the second one's";
  EXPECT_EQ(job_.state().restarts, 0u);
}

TEST_F(ScaleTest, AWorkerThatIsKilledBeforeItJoinsIsStartedAgainOnlyWhenItHasEnded) {
  job_.Scale(3);
  job_.Scale(2);
  EXPECT_THAT(Pick<StartProcess>(job_.Scale(3)), IsEmpty());
  EXPECT_THAT(Pick<StartProcess>(job_.Exit(kWorker2)), ElementsAre(StartProcess{kWorker2, 2}));
}

TEST_F(ScaleTest, ALeavingWorkerDoesNotHoldUpTheEpochsEnd) {
  job_.Tell(kData0, EpochEnded{1});
  job_.Scale(1);
  job_.CloseParts();
  job_.Flush(kWorker0);
  EXPECT_EQ(job_.state().step, Step::kFlushing);
  job_.Exit(kWorker1, "exited with code 0");
  EXPECT_EQ(job_.state().step, Step::kSnapshot);
}

TEST_F(ScaleTest, AnotherControllerStartsTheWorkersThatAreMissing) {
  job_.Scale(4);
  Add(kWorker2, "two");
  auto running = job_.controller().Wanted();
  std::erase_if(running, [](const StartProcess& process) { return process.id == kWorker3; });
  EXPECT_THAT(Pick<StartProcess>(job_.RestartController({.running = running})),
              ElementsAre(StartProcess{kWorker3, 2}));
  EXPECT_THAT(WantedWorkers(), SizeIs(4));
}

TEST_F(ScaleTest, AnotherControllerDoesNotWantTheWorkersThatWereLeaving) {
  job_.Scale(1);
  EXPECT_THAT(Pick<StartProcess>(job_.RestartController({.running = job_.controller().Wanted()})),
              IsEmpty());
  EXPECT_THAT(WantedWorkers(), ElementsAre(StartProcess{kWorker0, 1}));
  EXPECT_THAT(Sent<Refused>(job_.Join(kWorker1, "worker-1", 1)), SizeIs(1));
  EXPECT_THAT(Pick<StartProcess>(job_.Scale(2)), ElementsAre(StartProcess{kWorker1, 2}));
}

TEST_F(ScaleTest, AnotherControllerDoesNotTakeALeftWorkersEndForALoss) {
  job_.Scale(1);
  job_.Scale(2);
  job_.Exit(kWorker1, "exited with code 0");  // and before the next one starts, the leader dies
  auto running = job_.controller().Wanted();
  running.back().generation = 1;
  JobState state = job_.state();
  state.slots[SlotIndex(SmallJob(), kWorker1)].generation = 1;
  auto next = JobController::Restore(SmallJob(), Encode(state)).value();
  next->Begin(job_.now(), {.running = running});
  const auto actions = next->Handle(
      ProcessExited{.id = kWorker1, .generation = 1, .how = "exited with code 0"}, job_.now());
  EXPECT_THAT(Pick<StartProcess>(actions), ElementsAre(StartProcess{kWorker1, 2}));
  EXPECT_EQ(next->state().restarts, 0u);
}

TEST_F(ScaleTest, AnotherControllerThatWantsALeavingWorkerAgainDoesNotTakeItsEndForALoss) {
  const auto running = job_.controller().Wanted();
  job_.Scale(1);  // the leader dies, and the user wants two again
  auto next = JobController::Restore(SmallJob(), Encode(job_.state())).value();
  next->Begin(job_.now(), {.running = running});
  const auto actions = next->Handle(
      ProcessExited{.id = kWorker1, .generation = 1, .how = "exited with code 0"}, job_.now());
  EXPECT_THAT(Pick<StartProcess>(actions), ElementsAre(StartProcess{kWorker1, 2}));
  EXPECT_EQ(next->state().restarts, 0u);
}

TEST_F(ScaleTest, AWorkerThatWasToLeaveAndJoinsAnotherControllerCountsWhenItIsLost) {
  const auto running = job_.controller().Wanted();
  job_.Scale(1);
  auto next = JobController::Restore(SmallJob(), Encode(job_.state())).value();
  next->Begin(job_.now(), {.running = running});
  controller::Join join;
  join.id = kWorker1;
  join.uid = "worker-1";
  join.incarnation = 1;
  next->Handle(Received{1, join}, job_.now());
  next = JobController::Restore(SmallJob(), Encode(next->state())).value();
  next->Begin(job_.now(), {.running = running});
  next->Handle(ProcessExited{.id = kWorker1, .generation = 1, .how = "was killed by signal 9"},
               job_.now());
  EXPECT_EQ(next->state().restarts, 1u);
}

TEST_F(ScaleTest, ANumberThatWasSetWhileNobodyLedIsObeyed) {
  JobSettings settings = SmallJob();
  settings.workers = 3;
  auto restored = JobController::Restore(settings, Encode(job_.state()));
  ASSERT_TRUE(restored.ok()) << restored.status();
  const auto actions = (*restored)->Begin(job_.now(), {.running = job_.controller().Wanted()});
  EXPECT_THAT(Pick<StartProcess>(actions), ElementsAre(StartProcess{kWorker2, 1}));
}

TEST(ScaleBeforeStartTest, WorkersThatNobodyWaitsForYetStartWithTheOthers) {
  JobSettings settings = SmallJob();
  settings.training_examples = 0;  // the data servers will tell
  Harness job(settings);
  job.Begin();
  EXPECT_THAT(Pick<StartProcess>(job.Scale(3)), IsEmpty());
  job.Join(kData0, "data");
  const auto actions =
      job.Tell(kData0, Heartbeat{.progress = DataServerProgress{.training_examples = kExamples}});
  EXPECT_THAT(Pick<StartProcess>(actions), SizeIs(5));
}

}  // namespace
}  // namespace adamant::controller
