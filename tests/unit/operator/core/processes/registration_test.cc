#include "operator/core/processes/registration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/processes/silence_watch.h"
#include "tests/unit/operator/core/processes/small_table.h"

namespace adamant::controller {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::Pair;
using Joined = Registration::Joined;

class RegistrationTest : public SmallTable {};

TEST_F(RegistrationTest, ANewProcessGetsTheNextIncarnationAndTimeToLoad) {
  processes_.Record(kWorker0) = {.incarnation = 4, .generation = 2, .joined = 4};
  EXPECT_EQ(Join(kWorker0, "a", 7), Joined::kNew);
  EXPECT_EQ(processes_.IncarnationOf(kWorker0), 5u);
  EXPECT_EQ(processes_.Record(kWorker0).joined, 5u);
  EXPECT_EQ(At(kWorker0).liveness, Liveness::kRunning);
  EXPECT_EQ(At(kWorker0).connection, 7u);
  EXPECT_EQ(At(kWorker0).since, now_);
  EXPECT_EQ(At(kWorker0).deadline, now_ + SilenceWatch::kLoadTimeout);
  EXPECT_THAT(Pick<Persist>(Take()), testing::SizeIs(1));
}

TEST_F(RegistrationTest, TheProcessOfASlotIsOfTheGenerationThatItSays) {
  processes_.Record(kWorker0) = {.incarnation = 4, .uid = "a", .generation = 3, .joined = 4};
  controller::Join all_that_is_left = {
      .id = kWorker0, .uid = "a", .incarnation = 4, .generation = 2};
  EXPECT_EQ(registration_.OnJoin(7, all_that_is_left, now_), Joined::kNew);
  EXPECT_EQ(At(kWorker0).generation, 2u);
  EXPECT_EQ(registration_.OnJoin(8, {.id = kWorker0, .uid = "b", .generation = 3}, now_),
            Joined::kReplaced);
  EXPECT_EQ(At(kWorker0).generation, 3u);
}

TEST_F(RegistrationTest, ItTakesTheUidOfAProcessToComeBackAsIt) {
  processes_.Record(kWorker0) = {.incarnation = 4, .uid = "b", .generation = 3, .joined = 4};
  const controller::Join replaced = {.id = kWorker0, .uid = "a", .incarnation = 4, .generation = 2};
  EXPECT_EQ(registration_.OnJoin(7, replaced, now_), Joined::kRefused);
}

TEST_F(RegistrationTest, OneThatComesBackIsWhatItWas) {
  Join(kWorker0, "a", 7);
  At(kWorker0).started = true;
  Take();
  EXPECT_EQ(Join(kWorker0, "a", 8), Joined::kNew);
  EXPECT_EQ(processes_.IncarnationOf(kWorker0), 1u);
  EXPECT_TRUE(At(kWorker0).started);
  EXPECT_EQ(At(kWorker0).deadline, now_ + settings_.silence_timeout);
  EXPECT_THAT(Pick<CloseConnection>(Take()), ElementsAre(Field(&CloseConnection::connection, 7)));
}

TEST_F(RegistrationTest, AnotherProcessTakesTheSlotOfOneThatRuns) {
  Join(kWorker0, "a", 7);
  At(kWorker0).started = true;
  Take();
  EXPECT_EQ(Join(kWorker0, "b", 8), Joined::kReplaced);
  EXPECT_THAT(Sent<Refused>(Take()), ElementsAre(Pair(7, testing::_)));
  EXPECT_FALSE(At(kWorker0).started);
}

TEST_F(RegistrationTest, OneThatWasDismissedAndIsWantedAfterAllIsToBeJudged) {
  processes_.Record(kWorker0) = {.generation = 2, .concluded = 2};
  Join(kWorker0, "a");
  EXPECT_EQ(processes_.Record(kWorker0).concluded, 1u);
}

TEST_F(RegistrationTest, WhoHasNoPlaceIsRefused) {
  processes_.Record(kWorker0) = {.incarnation = 2, .uid = "b", .generation = 3};
  const controller::Join fits = {.id = kWorker0, .uid = "a", .generation = 3};
  controller::Join other_version = fits;
  other_version.format_version = kControlFormatVersion + 1;
  controller::Join surplus = fits;
  surplus.id.slot = 2;
  controller::Join nobody = fits;
  nobody.uid = "";
  controller::Join given_up = fits;
  given_up.incarnation = 1;
  controller::Join earlier = fits;
  earlier.generation = 2;
  for (const controller::Join& join : {other_version, surplus, nobody, given_up, earlier}) {
    EXPECT_EQ(registration_.OnJoin(7, join, now_), Joined::kRefused);
    const auto actions = Take();
    EXPECT_THAT(Sent<Refused>(actions), ElementsAre(Pair(7, testing::_)));
    EXPECT_THAT(Pick<CloseConnection>(actions),
                ElementsAre(Field(&CloseConnection::connection, 7)));
  }
  EXPECT_EQ(registration_.OnJoin(7, fits, now_), Joined::kNew);
}

TEST_F(RegistrationTest, WhoHasNoRoomYetHasItsTimeToJoinFromNowOn) {
  for (const SlotId id : {kWorker0, kWorker1}) {
    processes_.Record(id).generation = 1;
    At(id).liveness = Liveness::kStarting;
    At(id).deadline = now_;
  }
  registration_.OnWaiting({{{kWorker0, 1}, {kWorker1, 2}, {{Role::kWorker, 9}, 1}}}, now_);
  EXPECT_EQ(At(kWorker0).deadline, now_ + settings_.join_timeout);
  EXPECT_EQ(At(kWorker1).deadline, now_) << "it is of another generation";
}

}  // namespace
}  // namespace adamant::controller
