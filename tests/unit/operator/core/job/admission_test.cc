#include "operator/core/job/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "tests/unit/operator/core/job/job_parts.h"

namespace adamant::controller {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

class AdmissionTest : public JobParts {
 protected:
  std::vector<Action> Ask(const Join& join) {
    admission_.OnJoin(ConnectionOf(join.id), join, now_);
    return Take();
  }
  std::vector<Action> Ask(SlotId id, const std::string& uid = "a") { return Ask(JoinOf(id, uid)); }

  Welcome WelcomeTo(SlotId id) {
    const auto welcomes = Sent<Welcome>(Ask(id));
    EXPECT_THAT(welcomes, ElementsAre(Pair(ConnectionOf(id), testing::_)));
    return welcomes.empty() ? Welcome{} : welcomes[0].second;
  }

  // Whom the streams that are closed belong to.
  static std::vector<ConnectionId> Closed(const std::vector<Action>& actions) {
    std::vector<ConnectionId> closed;
    for (const CloseConnection& close : Pick<CloseConnection>(actions)) {
      closed.push_back(close.connection);
    }
    return closed;
  }

  DataReports data_{settings_, state_, outbox_, starter_, outcome_};
  Admission admission_{settings_, state_, outbox_, processes_, data_, training_};
};

TEST_F(AdmissionTest, WhoIsLetInIsToldAllItNeedsToBegin) {
  state_.term = 5;
  state_.schedule_epochs = 7;
  state_.recovery.attempt = 3;
  state_.recovery.rate_factor = 0.25;
  state_.recovery.layer_rates = {{.layer = "dense", .rate = 0.1, .factor = 0.5}};
  state_.slots[SlotIndex(settings_, kWorker0)].incarnation = 8;
  const Welcome welcome = WelcomeTo(kWorker0);
  EXPECT_EQ(welcome.term, 5u);
  EXPECT_EQ(welcome.incarnation, 9u);
  EXPECT_EQ(welcome.job_uid, 42u);
  EXPECT_EQ(welcome.training_examples, kExamples);
  EXPECT_EQ(welcome.rate_factor, 0.25);
  EXPECT_EQ(welcome.layer_factors, (std::map<std::string, double>{{"dense", 0.5}}));
  EXPECT_EQ(welcome.attempt, 3u);
  EXPECT_EQ(welcome.schedule_epochs, 7u);
}

TEST_F(AdmissionTest, OnlyDataServersAreToldWhatTheFilesAre) {
  state_.data_files = {{.field = "spec.data.train.idx.images", .fingerprint = 5}};
  EXPECT_EQ(WelcomeTo(kData0).data_files, state_.data_files);
  EXPECT_THAT(WelcomeTo(kServer0).data_files, IsEmpty());
  EXPECT_THAT(WelcomeTo(kWorker0).data_files, IsEmpty());
}

TEST_F(AdmissionTest, WhoJoinsIsShownToTheOthersAndSeesThemAfterItsWelcome) {
  Ask(kWorker0);
  const auto actions = Ask(kWorker1);
  const std::vector<Send> sent = Pick<Send>(actions);
  ASSERT_THAT(sent, SizeIs(3));
  EXPECT_TRUE(std::holds_alternative<Welcome>(sent[0].message));
  EXPECT_THAT(Sent<Membership>(actions),
              ElementsAre(Pair(ConnectionOf(kWorker0), Field(&Membership::members, SizeIs(2))),
                          Pair(ConnectionOf(kWorker1), Field(&Membership::members, SizeIs(2)))));
}

TEST_F(AdmissionTest, WhomAnotherControllerHasStartedIsSentAwayWithoutAWord) {
  Join newer = JoinOf(kWorker0, "a");
  newer.generation = 2;
  for (const Join& join : {newer, JoinOf({Role::kWorker, 7}, "b")}) {
    const auto actions = Ask(join);
    EXPECT_THAT(actions, SizeIs(1));
    EXPECT_THAT(Closed(actions), ElementsAre(ConnectionOf(join.id)));
  }
  EXPECT_FALSE(processes_.IsRunning(kWorker0));
}

TEST_F(AdmissionTest, WhoComesWhenTheJobHasEndedIsToldToStopAndWhy) {
  outcome_.End(Phase::kFailed, "no worker is left");
  Take();
  const auto actions = Ask(kWorker0);
  EXPECT_THAT(Sent<Stop>(actions),
              ElementsAre(Pair(ConnectionOf(kWorker0), Field(&Stop::reason, "no worker is left"))));
  EXPECT_THAT(Closed(actions), ElementsAre(ConnectionOf(kWorker0)));
  EXPECT_FALSE(processes_.IsRunning(kWorker0));
}

TEST_F(AdmissionTest, WhoComesWhileAllProcessesAreEndedIsRefused) {
  training_.GoBack({{.id = kData0, .generation = 1}}, now_);
  Take();
  const auto actions = Ask(kWorker0);
  EXPECT_THAT(Sent<Refused>(actions), SizeIs(1));
  EXPECT_THAT(Closed(actions), ElementsAre(ConnectionOf(kWorker0)));
  EXPECT_FALSE(processes_.IsRunning(kWorker0));
}

TEST_F(AdmissionTest, OnlyDataServersAreLetInBeforeItIsKnownHowLongTheJobIs) {
  settings_.training_examples = 0;
  now_ += seconds(50);
  const auto actions = Ask(kWorker0);
  EXPECT_THAT(actions, SizeIs(1));
  EXPECT_THAT(Closed(actions), ElementsAre(ConnectionOf(kWorker0)));
  EXPECT_EQ(processes_.At(kWorker0).deadline, now_ + settings_.join_timeout) << "it asks again";
  EXPECT_EQ(WelcomeTo(kData0).training_examples, 0u);
}

TEST_F(AdmissionTest, WhoIsRefusedIsNotWelcomed) {
  Ask(kWorker0);
  const auto actions = Ask(kWorker0, "");
  EXPECT_THAT(Sent<Refused>(actions), SizeIs(1));
  EXPECT_THAT(Pick<Send>(actions), SizeIs(1));
}

TEST_F(AdmissionTest, WhoTakesASlotEndsWhatWasExpectedOfTheProcessBefore) {
  Ask(kServer0, "a");
  training_.OnAlarm(kServer0, "disk full", now_);
  Ask(kServer0, "a");
  EXPECT_EQ(training_.alarms().AlarmOf(kServer0), "disk full") << "it is the same one";
  Ask(kServer0, "b");
  EXPECT_EQ(training_.alarms().AlarmOf(kServer0), "");
}

}  // namespace
}  // namespace adamant::controller
