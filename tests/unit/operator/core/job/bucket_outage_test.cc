#include "operator/core/job/bucket_outage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {
namespace {

constexpr std::chrono::minutes kMinute{1};

class BucketOutageTest : public testing::Test {
 protected:
  // What a report of this second says.
  std::string MessageAt(int second,
                        const std::map<std::string, std::uint32_t>& states,
                        Phase phase = Phase::kRunning,
                        const std::string& message = "") {
    JobReport report;
    report.phase = phase;
    report.message = message;
    report.buckets.resize(64);
    report.bucket_summary.states = states;
    outage_.TellIn(report,
                   Clock::TimePoint(std::chrono::seconds(second)),
                   BucketOutage::WallTime(std::chrono::seconds(1'700'000'000 + second)));
    return report.message;
  }

  BucketOutage outage_;
};

TEST_F(BucketOutageTest, SaysHowManyBucketsTrainingWaitsForAndSinceWhen) {
  EXPECT_EQ(MessageAt(0, {{"Ready", 64}}), "");
  EXPECT_EQ(MessageAt(10, {{"Ready", 60}, {"Blocked", 4}}), "") << "it may be a promotion";
  EXPECT_EQ(MessageAt(13, {{"Ready", 61}, {"Blocked", 2}, {"Restoring", 1}}),
            "3 of 64 buckets have too few live copies to take updates since 2023-11-14T22:13:30Z "
            "(2 Blocked, 1 Restoring); training waits for them");
  EXPECT_EQ(MessageAt(14, {{"Degraded", 64}}), "") << "these take updates";
  EXPECT_EQ(MessageAt(15, {{"Blocked", 1}}), "") << "another outage";
  EXPECT_THAT(MessageAt(18, {{"Blocked", 1}}), testing::StartsWith("1 of 64 buckets has too few "));
}

TEST_F(BucketOutageTest, SaysNothingWhereSomethingElseIsToldOrNobodyTrains) {
  MessageAt(0, {{"Blocked", 4}});
  EXPECT_EQ(MessageAt(9, {{"Blocked", 4}}, Phase::kRunning, "data-server-0 loads"),
            "data-server-0 loads");
  EXPECT_NE(MessageAt(9, {{"Blocked", 4}}, Phase::kEvaluating), "");
  EXPECT_EQ(MessageAt(9, {{"Blocked", 4}}, Phase::kFailed), "");
}

// Three servers hold three buckets twice, and two copies have to be live.
class OutageOfSurvivorsTest : public testing::Test {
 protected:
  OutageOfSurvivorsTest() {
    job_.Begin();
    job_.JoinAll();
    for (std::uint32_t i = 0; i < 3; ++i) {
      while (const auto learner = job_.state().buckets[i].learner) {
        const Configuration configuration = job_.state().buckets[i];
        job_.Tell({Role::kParameterServer, configuration.primary.slot},
                  Proposals{{{.bucket = i,
                              .configuration_version = configuration.version,
                              .kind = Proposal::Kind::kAdd,
                              .proposer = configuration.primary,
                              .subject = *learner}}});
      }
    }
    job_.Pass(std::chrono::seconds(1));
  }

  static JobSettings Settings() {
    JobSettings settings = SmallJob();
    settings.parameter_servers = 3;
    settings.buckets = 3;
    settings.copies = 2;
    settings.min_in_sync = 2;
    return settings;
  }

  void DeleteByForce(SlotId id) {
    job_.Handle(ProcessExited{.id = id,
                              .generation = job_.GenerationOf(id),
                              .how = "is gone",
                              .proved = false,
                              .cause = LossCause::kDisruption});
  }

  void LeadAnew() {
    job_.RestartController({.running = job_.controller().Wanted()});
    outage_ = {};
  }

  void Resume() {
    job_.Handle(SuspendRequested{.reason = "by the user", .at_once = true});
    job_.RestartController({.others = false, .running = {}, .resumes = true});
  }

  // Of those that live.
  void JoinAgain(const std::vector<SlotId>& members) {
    for (const SlotId id : members) {
      job_.Join(id, ToString(id), 1);
      job_.Tell(id, Heartbeat{});
      if (id.role == Role::kParameterServer) {
        job_.Serve(id.slot);
      }
    }
  }

  // As a reconciler asks for it, for so long.
  std::string MessageAfter(std::chrono::seconds time, const std::vector<SlotId>& silent) {
    std::string message;
    for (; time.count() > 0; --time) {
      job_.Pass(std::chrono::seconds(1), silent);
      JobReport report = job_.controller().Report();
      outage_.TellIn(report, job_.now(), BucketOutage::WallTime(std::chrono::seconds(0)));
      message = report.message;
    }
    return message;
  }

  Harness job_{Settings()};
  BucketOutage outage_;
};

TEST_F(OutageOfSurvivorsTest, TheNextControllerTellsItTooOnceItKnowsWhoLives) {
  ASSERT_EQ(job_.state().phase, Phase::kRunning);
  const std::vector<SlotId> dead = {kServer1, {Role::kParameterServer, 2}};
  for (const SlotId id : dead) {
    DeleteByForce(id);
  }
  const std::string told = MessageAfter(std::chrono::seconds(5), dead);
  ASSERT_THAT(told, testing::HasSubstr("3 of 3 buckets have too few live copies"));
  LeadAnew();
  std::vector<SlotId> unheard = dead;
  unheard.push_back(kServer0);
  EXPECT_EQ(MessageAfter(std::chrono::seconds(5), unheard), "") << "server 0 may live";
  JoinAgain({kData0, kData1, kServer0, kWorker0, kWorker1});
  EXPECT_EQ(MessageAfter(std::chrono::seconds(2), dead), "") << "others may take over";
  EXPECT_THAT(MessageAfter(std::chrono::seconds(3), dead),
              testing::HasSubstr("3 of 3 buckets have too few live copies"));
}

TEST_F(OutageOfSurvivorsTest, AMemberThatDoesNotRunIsNoLiveCopy) {
  LeadAnew();
  JoinAgain({kData0, kData1, kServer0, kServer1, {Role::kParameterServer, 2}, kWorker0, kWorker1});
  EXPECT_EQ(MessageAfter(std::chrono::seconds(10), {}), "");
  EXPECT_EQ(job_.controller().Report().bucket_summary.states.at("Ready"), 3u);
  DeleteByForce(kServer1);
  const auto states = job_.controller().Report().bucket_summary.states;
  EXPECT_EQ(states.at("Ready"), 1u) << "the one that it does not hold";
}

TEST_F(OutageOfSurvivorsTest, AJobThatIsResumedStartsAsEver) {
  Resume();
  EXPECT_EQ(MessageAfter(std::chrono::seconds(10), {}), "");
}

TEST_F(OutageOfSurvivorsTest, AJobThatIsResumedSaysForWhoseDiskItWaitsAndHowLong) {
  Resume();
  for (const std::uint32_t server : {0, 1}) {
    job_.Join({Role::kParameterServer, server}, "again" + std::to_string(server));
    job_.ReportDisk(server);
  }
  const std::vector<SlotId> silent = {
      kData0, kData1, kWorker0, kWorker1, {Role::kParameterServer, 2}};
  EXPECT_EQ(MessageAfter(std::chrono::seconds(3), silent), "") << "it may come";
  ASSERT_EQ(job_.state().phase, Phase::kStarting);
  EXPECT_THAT(MessageAfter(std::chrono::seconds(1), silent),
              testing::AllOf(testing::HasSubstr("on that of parameter-server-2 is not known since"),
                             testing::HasSubstr("training waits for it until 1970-"),
                             testing::HasSubstr("then goes on without")));
}

TEST_F(BucketOutageTest, WhatNoOtherDiskHasIsWaitedForWithoutAnEnd) {
  JobReport report;
  report.phase = Phase::kStarting;
  report.buckets.resize(4);
  report.disk_wait = {.buckets = 1, .servers = {1, 2}, .until = Clock::TimePoint() + kMinute};
  const auto tell = [&](Clock::Duration after) {
    report.message.clear();
    outage_.TellIn(report,
                   Clock::TimePoint() + after,
                   BucketOutage::WallTime(std::chrono::duration_cast<std::chrono::seconds>(after)));
    return report.message;
  };
  EXPECT_EQ(tell(std::chrono::seconds(0)), "");
  EXPECT_EQ(tell(std::chrono::seconds(3)),
            "1 of 4 buckets has to come back from disk, and what is on that of parameter-server-1, "
            "parameter-server-2 is not known since 1970-01-01T00:00:00Z; training waits for it "
            "until 1970-01-01T00:01:00Z, and then goes on without, where other disks have all "
            "buckets");
  EXPECT_THAT(tell(kMinute),
              testing::EndsWith("waits for it: no other disk has all of these buckets"));
}

}  // namespace
}  // namespace adamant::controller
