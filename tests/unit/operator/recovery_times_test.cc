#include "operator/recovery_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "tests/fakes/fake_clock.h"

namespace adamant {
namespace {

using controller::Note;
using controller::Role;
using controller::SlotId;
using std::chrono::seconds;
using Kind = controller::FailoverPhase::Kind;
using Sum = RecoveryTimes::Sum;

constexpr SlotId kWorker{Role::kWorker, 0};
constexpr SlotId kServer{Role::kParameterServer, 0};

class RecoveryTimesTest : public testing::Test {
 protected:
  void Tell(Note::Kind kind, SlotId member) {
    times_.OnNote({.kind = kind, .member = member}, clock_.Now());
  }

  FakeClock clock_;
  RecoveryTimes times_;
};

TEST_F(RecoveryTimesTest, AllPhasesAreThereFromTheStart) {
  EXPECT_THAT(times_.sums(),
              testing::ElementsAre(testing::Pair("catch_up", Sum{}),
                                   testing::Pair("detect", Sum{}),
                                   testing::Pair("reconcile", Sum{}),
                                   testing::Pair("replace", Sum{}),
                                   testing::Pair("restart", Sum{})));
}

TEST_F(RecoveryTimesTest, PhasesOfBucketsAddUp) {
  times_.OnPhase({.kind = Kind::kReplace, .seconds = 0.25});
  times_.OnPhase({.kind = Kind::kReplace, .seconds = 0.5});
  times_.OnPhase({.kind = Kind::kCatchUp, .seconds = 7});
  EXPECT_EQ(times_.sums().at("replace"), (Sum{2, 0.75}));
  EXPECT_EQ(times_.sums().at("catch_up"), (Sum{1, 7}));
  EXPECT_EQ(times_.sums().at("detect"), Sum{});
}

TEST_F(RecoveryTimesTest, AProcessIsMissingFromItsLossUntilTheNextHasJoined) {
  Tell(Note::Kind::kLost, kWorker);
  clock_.Advance(seconds(2));
  Tell(Note::Kind::kLost, kServer);
  clock_.Advance(seconds(3));
  Tell(Note::Kind::kJoined, kWorker);
  EXPECT_EQ(times_.sums().at("restart"), (Sum{1, 5}));
  clock_.Advance(seconds(4));
  Tell(Note::Kind::kJoined, kServer);
  EXPECT_EQ(times_.sums().at("restart"), (Sum{2, 12}));
}

TEST_F(RecoveryTimesTest, OneThatIsLostAgainBeforeItJoinsHasBeenMissingSinceTheFirstTime) {
  Tell(Note::Kind::kLost, kWorker);
  clock_.Advance(seconds(10));
  Tell(Note::Kind::kLost, kWorker);
  clock_.Advance(seconds(1));
  Tell(Note::Kind::kJoined, kWorker);
  EXPECT_EQ(times_.sums().at("restart"), (Sum{1, 11}));
}

TEST_F(RecoveryTimesTest, WhoJoinsWithoutALossIsNoRecovery) {
  Tell(Note::Kind::kJoined, kWorker);
  Tell(Note::Kind::kLost, kWorker);
  Tell(Note::Kind::kJoined, kWorker);
  Tell(Note::Kind::kJoined, kWorker);
  times_.OnNote({.kind = Note::Kind::kLost}, clock_.Now());
  EXPECT_EQ(times_.sums().at("restart"), (Sum{1, 0}));
}

TEST_F(RecoveryTimesTest, ASlotThatIsNotWantedWaitsForNobody) {
  Tell(Note::Kind::kLost, kWorker);
  Tell(Note::Kind::kLost, kServer);
  std::vector<controller::JobReport::MemberReport> members(1);
  members.front().id = kServer;
  times_.KeepSlots(members);
  clock_.Advance(seconds(600));
  Tell(Note::Kind::kJoined, kWorker);
  EXPECT_EQ(times_.sums().at("restart"), Sum{});
  Tell(Note::Kind::kJoined, kServer);
  EXPECT_EQ(times_.sums().at("restart"), (Sum{1, 600}));
}

TEST_F(RecoveryTimesTest, AJobThatHasEndedMissesNobody) {
  Tell(Note::Kind::kLost, kWorker);
  times_.ForgetLost();
  clock_.Advance(seconds(600));
  Tell(Note::Kind::kJoined, kWorker);
  EXPECT_EQ(times_.sums().at("restart"), Sum{});
}

}  // namespace
}  // namespace adamant
