#include "operator/core/job/server_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/job/job_parts.h"

namespace adamant::controller {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

// All processes have joined; no disk is opened yet.
class ServerReportsTest : public JobParts {
 protected:
  ServerReportsTest() { JoinAll(); }

  void Tell(SlotId server, const MemberMessage& message) {
    reports_.OnMessage(server, message, now_);
  }
  void OpenDisks() {
    Tell(kServer0, StoredBuckets{});
    Tell(kServer1, StoredBuckets{});
  }
  void ServeAll() {
    OpenDisks();
    Tell(kServer0, ReadyOf(0));
    Tell(kServer1, ReadyOf(1));
    training_.Settle(now_);
  }

  static constexpr ServerId kFirst{.slot = 0, .incarnation = 1};

  ServerReports reports_{processes_, placement_, training_, outcome_};
};

TEST_F(ServerReportsTest, BucketsArePlacedOnceAllServersHaveOpenedTheirDisks) {
  Tell(kServer0, StoredBuckets{});
  EXPECT_THAT(state_.buckets, IsEmpty());
  Tell(kServer1, StoredBuckets{});
  EXPECT_THAT(state_.buckets, SizeIs(4));
}

TEST_F(ServerReportsTest, WhatADiskHasLostIsTold) {
  Tell(kServer0, StoredBuckets{.buckets = {{.bucket = 1, .detail = "4.log: is damaged"}}});
  EXPECT_THAT(Pick<Note>(Take()),
              ElementsAre(Field(&Note::text, HasSubstr("is not used: 4.log: is damaged"))));
}

TEST_F(ServerReportsTest, ADiskOfALaterStateFailsTheJobForGood) {
  Tell(kServer0, StoredBuckets{.previous_incarnation = 1});
  EXPECT_EQ(state_.phase, Phase::kFailed);
  EXPECT_EQ(state_.end, EndKind::kStateIsOld);
  EXPECT_THAT(state_.message,
              HasSubstr("parameter-server-0 was opened by incarnation 1, and the state gives out "
                        "1. "));
}

TEST_F(ServerReportsTest, ADiskOfAnEarlierProcessIsFine) {
  state_.slots[SlotIndex(settings_, kServer0)].incarnation = 2;
  Tell(kServer0, StoredBuckets{.previous_incarnation = 1});
  EXPECT_FALSE(outcome_.IsDecided());
}

TEST_F(ServerReportsTest, ADiskThatIsOlderThanWhatItHeldIsTold) {
  ServeAll();
  for (Configuration& configuration : state_.buckets) {
    for (ServerId& replica : configuration.replicas) {
      replica.incarnation = 2;
    }
  }
  for (const SlotId server : {kServer0, kServer1}) {
    state_.slots[SlotIndex(settings_, server)].incarnation = 3;
  }
  Take();
  Tell(kServer0, StoredBuckets{.previous_incarnation = 1});
  EXPECT_THAT(Pick<Note>(Take()),
              Contains(AllOf(Field(&Note::kind, Note::Kind::kAlarm),
                             Field(&Note::text,
                                   HasSubstr("parameter-server-0: its disk seems to be an earlier "
                                             "copy, put back: incarnation 1 was the last")))));
  Tell(kServer1, StoredBuckets{.previous_incarnation = 2});
  EXPECT_THAT(Pick<Note>(Take()), Not(Contains(Field(&Note::text, HasSubstr("earlier copy")))));
}

TEST_F(ServerReportsTest, TrainingBeginsOnceTheBucketsAreServed) {
  OpenDisks();
  Tell(kServer0, ReadyOf(0));
  training_.Settle(now_);
  EXPECT_FALSE(training_.begun());
  Tell(kServer1, ReadyOf(1));
  training_.Settle(now_);
  EXPECT_TRUE(training_.begun());
}

TEST_F(ServerReportsTest, WhoProposesWhatIsNotUpToDateIsToldHowThingsStand) {
  OpenDisks();
  training_.Settle(now_);
  Take();
  Tell(kServer1, Proposals{{{.bucket = 0, .configuration_version = 0}}});
  training_.Settle(now_);
  EXPECT_THAT(Sent<Membership>(Take()), ElementsAre(Pair(ConnectionOf(kServer1), testing::_)));
}

TEST_F(ServerReportsTest, AServerThatIsAboutToStopIsGivenNoMoreCopies) {
  settings_.copies = 2;
  ServeAll();
  EXPECT_THAT(state_.buckets, Contains(Field(&Configuration::learner, kFirst)));
  Tell(kServer0, Draining{});
  training_.Settle(now_);
  EXPECT_THAT(state_.buckets, Not(Contains(Field(&Configuration::learner, kFirst))));
}

TEST_F(ServerReportsTest, OtherMessagesAreIgnored) {
  settings_.copies = 2;
  ServeAll();
  const JobState before = state_;
  Take();
  Tell(kServer0, SnapshotTaken{});
  Tell(kServer0, Heartbeat{.progress = ParameterServerProgress{.alarm = "disk full"}});
  training_.Settle(now_);
  EXPECT_EQ(state_, before);
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(ServerReportsTest, HowADiskIsDoingIsToldAndKnown) {
  reports_.OnProgress(
      kServer0,
      {.oldest_unflushed_seconds = 7, .alarm = "disk full", .damages = {"1.segment: missing"}},
      now_);
  EXPECT_EQ(placement_.servers().OldestUnflushed(0), 7);
  EXPECT_EQ(training_.alarms().AlarmOf(kServer0), "disk full");
  EXPECT_THAT(Pick<Note>(Take()),
              ElementsAre(Field(&Note::text, HasSubstr("disk full")),
                          Field(&Note::text, HasSubstr("1.segment: missing"))));
}

TEST_F(ServerReportsTest, ABucketThatIsServedAsProgressTellsIsServed) {
  OpenDisks();
  ParameterServerProgress progress;
  for (const BucketState& ready : ReadyOf(0).buckets) {
    progress.buckets.push_back({.bucket = ready.bucket,
                                .configuration_version = ready.configuration_version,
                                .serving = true});
  }
  reports_.OnProgress(kServer0, progress, now_);
  for (BucketId bucket = 0; bucket < state_.buckets.size(); ++bucket) {
    EXPECT_EQ(placement_.configurations().IsServed(bucket),
              state_.buckets[bucket].primary.slot == 0);
  }
}

}  // namespace
}  // namespace adamant::controller
