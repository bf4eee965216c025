#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "operator/core/job/job_controller.h"
#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(StartTest, EveryProcessIsStartedUnderTermOneWhichIsStoredFirst) {
  Harness job;
  const auto actions = job.Begin();
  ASSERT_TRUE(std::holds_alternative<Persist>(actions.front()));
  EXPECT_THAT(Pick<StartProcess>(actions), SizeIs(6));
  EXPECT_EQ(job.state().term, 1u);
  EXPECT_EQ(job.state().phase, Phase::kStarting);
}

TEST(StartTest, MembersGetWelcomeThenMembershipWithTheirIncarnation) {
  Harness job;
  job.Begin();
  const auto sends = Pick<Send>(job.Join(kWorker0, "a"));
  ASSERT_THAT(sends, SizeIs(2));
  const auto& welcome = std::get<Welcome>(sends[0].message);
  EXPECT_EQ(welcome.incarnation, 1u);
  EXPECT_EQ(welcome.job_uid, 42u);
  const auto& view = std::get<Membership>(sends[1].message);
  ASSERT_THAT(view.members, SizeIs(1));
  EXPECT_EQ(view.members[0].id, kWorker0);
  EXPECT_THAT(view.buckets, IsEmpty());
}

TEST(StartTest, BucketsThatAreReportedTogetherAreStoredAndPublishedOnce) {
  Harness job;
  job.Begin();
  for (const SlotId id : {kData0, kData1, kServer0, kServer1, kWorker0, kWorker1}) {
    job.Join(id, ToString(id));
    job.Tell(id, Heartbeat{});
  }
  job.ReportDisk(0);
  job.ReportDisk(1);
  ASSERT_FALSE(job.state().buckets.empty());
  EXPECT_THAT(job.Serve(0, 0, /*more=*/true), IsEmpty());
  EXPECT_THAT(job.Serve(1, 0, /*more=*/true), IsEmpty());
  const auto actions = job.Handle(Tick{});
  EXPECT_THAT(Pick<Persist>(actions), SizeIs(1));
  EXPECT_THAT(Sent<Membership>(actions), SizeIs(6));
  for (const Configuration& bucket : job.state().buckets) {
    EXPECT_TRUE(bucket.created);
  }
}

TEST(StartTest, WhatIsNotAboutBucketsIsDecidedAtOnce) {
  Harness job;
  job.Begin();
  Join join;
  join.id = kWorker0;
  join.uid = "a";
  join.generation = job.GenerationOf(kWorker0);
  EXPECT_THAT(Sent<Welcome>(job.Handle(Received{1, join}, /*more=*/true)), SizeIs(1));
}

TEST(StartTest, AProcessThatAnotherControllerHasStartedMeanwhileIsSentAwayAsItIs) {
  Harness job;
  job.Begin();
  controller::Join known;
  known.id = kWorker0;
  known.uid = "of the next controller";
  known.generation = job.state().slots[SlotIndex(SmallJob(), kWorker0)].generation + 1;
  controller::Join added;  // in a slot that this controller has never heard of
  added.id = {.role = Role::kWorker, .slot = SmallJob().workers};
  added.uid = "of the next controller";
  added.generation = 1;
  for (const bool suspended : {false, true}) {
    if (suspended) {
      job.Handle(SuspendRequested{.reason = "it is wanted"});
    }
    for (const controller::Join& join : {known, added}) {
      const auto actions = job.Handle(Received{99, join});
      EXPECT_THAT(Pick<Send>(actions), IsEmpty());
      ASSERT_THAT(Pick<CloseConnection>(actions), SizeIs(1));
      EXPECT_EQ(Pick<CloseConnection>(actions)[0].connection, 99u);
    }
  }
}

TEST(StartTest, BucketsAreSpreadOnceAllParameterServersHaveOpenedTheirDisks) {
  Harness job;
  job.Begin();
  job.Join(kServer0, "a");
  job.Join(kServer1, "b");
  job.ReportDisk(0);
  EXPECT_THAT(job.state().buckets, IsEmpty());
  job.ReportDisk(1);
  ASSERT_THAT(job.state().buckets, SizeIs(4));
  for (std::uint32_t i = 0; i < 4; ++i) {
    const ServerId primary{.slot = i % 2, .incarnation = 1};
    EXPECT_EQ(job.state().buckets[i].version, 1u);
    EXPECT_EQ(job.state().buckets[i].primary, primary);
    EXPECT_THAT(job.state().buckets[i].replicas, ElementsAre(primary));
    EXPECT_FALSE(job.state().buckets[i].created);
  }
}

TEST(StartTest, TheEpochOpensOnlyWhenBucketsDataServersAndAWorkerAreReady) {
  Harness job;
  job.Begin();
  job.Join(kServer0, "a");
  job.Join(kServer1, "b");
  job.ReportDisk(0);
  job.ReportDisk(1);
  job.Join(kData0, "c");
  job.Join(kData1, "d");
  job.Serve(0);
  job.Serve(1);
  job.Join(kWorker1, "e");
  job.Tell(kWorker1, Heartbeat{});
  job.Tell(kData0, Heartbeat{});
  EXPECT_EQ(job.state().phase, Phase::kStarting);  // data-server-1 still loads
  const auto opened = Sent<OpenEpoch>(job.Tell(kData1, Heartbeat{}));
  ASSERT_THAT(opened, SizeIs(2));
  EXPECT_EQ(opened[0].second.epoch, 1u);
  EXPECT_EQ(job.state().phase, Phase::kRunning);
}

TEST(StartTest, CreatedBucketsAreStoredAndPublished) {
  Harness job;
  job.Begin();
  job.Join(kServer0, "a");
  job.Join(kServer1, "b");
  job.ReportDisk(0);
  job.ReportDisk(1);
  const auto actions = job.Serve(0);
  ASSERT_TRUE(std::holds_alternative<Persist>(actions.front()));
  const auto views = Sent<Membership>(actions);
  ASSERT_THAT(views, SizeIs(2));
  EXPECT_TRUE(views[0].second.buckets[0].created);
  EXPECT_FALSE(views[0].second.buckets[1].created);
}

TEST(JoinTest, OtherFormatVersionsAndUnknownSlotsAreRefused) {
  Harness job;
  job.Begin();
  Join join;
  join.format_version = 9;
  join.uid = "x";
  auto refused = Sent<Refused>(job.Handle(Received{50, join}));
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_THAT(refused[0].second.reason, HasSubstr("version 9"));
  EXPECT_THAT(refused[0].second.reason, HasSubstr("speaks 1"));

  join = {};
  join.id = {Role::kWorker, 7};
  join.uid = "y";
  refused = Sent<Refused>(job.Handle(Received{51, join}));
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_THAT(refused[0].second.reason, HasSubstr("no worker-7"));
}

TEST(JoinTest, AReconnectKeepsItsIncarnationAndANewProcessGetsAHigherOne) {
  Harness job;
  job.Begin();
  job.Join(kWorker0, "a");
  EXPECT_EQ(Sent<Welcome>(job.Join(kWorker0, "a", 1))[0].second.incarnation, 1u);
  EXPECT_EQ(Sent<Welcome>(job.Join(kWorker0, "b"))[0].second.incarnation, 2u);
}

TEST(JoinTest, AProcessWhoseSlotWasTakenIsRefused) {
  Harness job;
  job.Begin();
  job.Join(kWorker0, "a");
  const ConnectionId old = job.ConnectionOf(kWorker0);
  const auto taken = Sent<Refused>(job.Join(kWorker0, "b"));
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].first, old);
  EXPECT_THAT(Sent<Refused>(job.Join(kWorker0, "a", 1)), SizeIs(1));
  EXPECT_THAT(Sent<Welcome>(job.Join(kWorker0, "b", 2)), SizeIs(1));
}

TEST(JoinTest, AnOlderProcessThatNeverJoinedCannotTakeTheSlotFromANewerOne) {
  Harness job;
  job.Begin();
  const auto join = [&](const std::string& uid, std::uint64_t generation) {
    Join message;
    message.id = kWorker0;
    message.uid = uid;
    message.generation = generation;
    return job.Handle(Received{50 + generation, message});
  };
  job.RestartController();  // starts every slot anew
  ASSERT_EQ(job.GenerationOf(kWorker0), 2u);
  const auto refused = Sent<Refused>(join("first", 1));
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_THAT(refused[0].second.reason, HasSubstr("generation 1; the slot is at 2"));
  EXPECT_THAT(Sent<Welcome>(join("second", 2)), SizeIs(1));
  EXPECT_THAT(Sent<Refused>(join("first", 1)), SizeIs(1)) << "nor when that one has joined";
}

TEST(JoinTest, AProcessThatNamesNoGenerationCannotTakeASlot) {
  Harness job;
  job.Begin();
  Join message;
  message.id = kWorker0;
  message.uid = "stranger";
  EXPECT_THAT(Sent<Refused>(job.Handle(Received{50, message})), SizeIs(1));
  EXPECT_THAT(Sent<Welcome>(job.Join(kWorker0, "a")), SizeIs(1));
}

TEST(JoinTest, MembersOfBeforeAreRecognisedByARestartedController) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.RestartController();
  const auto welcome = Sent<Welcome>(job.Join(kWorker1, "worker-1", 1));
  ASSERT_THAT(welcome, SizeIs(1));
  EXPECT_EQ(welcome[0].second.incarnation, 1u);
  EXPECT_EQ(welcome[0].second.term, 2u);
}

// A job whose data only the data servers can look at.
JobSettings UncountedJob() {
  JobSettings settings = SmallJob();
  settings.training_examples = 0;
  return settings;
}

Heartbeat Counted(std::uint64_t examples) {
  return {.progress = DataServerProgress{.training_examples = examples}};
}

TEST(StartTest, DataServersStartAloneWhileNobodyKnowsHowManyExamplesThereAre) {
  Harness job(UncountedJob());
  EXPECT_THAT(Pick<StartProcess>(job.Begin()), SizeIs(2));
  EXPECT_THAT(job.controller().Wanted(), SizeIs(2));
  job.Join(kData0, "a");
  const auto actions = job.Tell(kData0, Counted(60000));
  ASSERT_TRUE(std::holds_alternative<Persist>(actions.front())) << "it is stored first";
  EXPECT_THAT(Pick<StartProcess>(actions), SizeIs(4));
  EXPECT_EQ(job.state().training_examples, 60000u);
  EXPECT_THAT(Pick<StartProcess>(job.Tell(kData0, Counted(60000))), IsEmpty());
  const auto welcome = std::get<Welcome>(Pick<Send>(job.Join(kWorker0, "b"))[0].message);
  EXPECT_EQ(welcome.training_examples, 60000u);
}

TEST(StartTest, AControllerThatGoesOnKnowsHowManyExamplesThereAre) {
  Harness job(UncountedJob());
  job.Begin();
  job.Join(kData0, "a");
  job.Tell(kData0, Counted(60000));
  EXPECT_THAT(Pick<StartProcess>(job.RestartController()), SizeIs(6));
}

TEST(StartTest, ServersThatCountDifferentExamplesAreAnInvalidJob) {
  Harness job(UncountedJob());
  job.Begin();
  job.Join(kData0, "a");
  job.Join(kData1, "b");
  job.Tell(kData0, Counted(60000));
  job.Tell(kData1, Counted(50000));
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_TRUE(job.controller().Report().invalid);
  EXPECT_THAT(job.state().message, HasSubstr("spec.data.train: data-server-1 has 50000 examples"));
}

Heartbeat Read(std::uint64_t images, const std::string& field = "spec.data.train.idx.images") {
  return {.progress = DataServerProgress{.training_examples = kExamples,
                                         .data_files = {{.field = field, .fingerprint = images}}}};
}

Welcome WelcomeOf(const Harness::Actions& actions) {
  return std::get<Welcome>(Pick<Send>(actions).at(0).message);
}

TEST(StartTest, TheFirstDataServerSaysWhatTheFilesAreAndTheNextOnesAreTold) {
  Harness job;
  job.Begin();
  EXPECT_THAT(WelcomeOf(job.Join(kData0, "a")).data_files, IsEmpty());
  const auto actions = job.Tell(kData0, Read(5));
  ASSERT_TRUE(std::holds_alternative<Persist>(actions.front())) << "it is stored first";
  const DataFile file{.field = "spec.data.train.idx.images", .fingerprint = 5};
  EXPECT_THAT(job.state().data_files, testing::ElementsAre(file));
  EXPECT_THAT(WelcomeOf(job.Join(kData1, "b")).data_files, testing::ElementsAre(file));
  EXPECT_THAT(WelcomeOf(job.Join(kWorker0, "c")).data_files, IsEmpty());
  EXPECT_THAT(Pick<Persist>(job.Tell(kData1, Read(5))), IsEmpty());
  job.RestartController();
  EXPECT_THAT(WelcomeOf(job.Join(kData0, "d")).data_files, testing::ElementsAre(file));
}

TEST(StartTest, ServersThatReadDifferentFilesAreAnInvalidJobBeforeTrainingBegins) {
  Harness job;
  job.Begin();
  job.Join(kData0, "a");
  job.Join(kData1, "b");
  job.Tell(kData0, Read(5, "spec.data.validation.idx.labels"));
  const auto actions = job.Tell(kData1, Read(6, "spec.data.validation.idx.labels"));
  EXPECT_THAT(Sent<OpenEpoch>(actions), IsEmpty());
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_TRUE(job.controller().Report().invalid);
  EXPECT_THAT(job.state().message,
              HasSubstr("spec.data.validation.idx.labels: data-server-1 reads another file"));
}

TEST(StartTest, OfFilesNoMoreAreKeptThanThereCanBe) {
  Harness job;
  job.Begin();
  job.Join(kData0, "a");
  for (char field = 'a'; field <= 'z'; ++field) {
    job.Tell(kData0, Read(1, std::string(1, field)));
  }
  EXPECT_THAT(job.state().data_files, SizeIs(4));
}

TEST(StartTest, FilesThatMayChangeAreTakenAsTheyAreReadNext) {
  Harness job;
  job.Begin();
  job.Join(kData0, "a");
  job.Tell(kData0, Read(5));
  job.RestartWithOtherData();
  EXPECT_THAT(WelcomeOf(job.Join(kData0, "b")).data_files, IsEmpty());
  job.Tell(kData0, Read(6));
  EXPECT_EQ(job.state().phase, Phase::kStarting);
  EXPECT_EQ(job.state().data_files.at(0).fingerprint, 6u);
  EXPECT_THAT(WelcomeOf(job.Join(kData1, "c")).data_files, SizeIs(1)) << "it is to read the same";
}

TEST(StartTest, FilesThatMayChangeStayStoredUntilOthersAreRead) {
  Harness job;
  job.Begin();
  job.Join(kData0, "a");
  job.Tell(kData0, Read(5));
  job.RestartWithOtherData();
  EXPECT_EQ(job.state().data_files.at(0).fingerprint, 5u);
  job.RestartController();
  EXPECT_THAT(WelcomeOf(job.Join(kData0, "b")).data_files, SizeIs(1));
}

TEST(StartTest, HowManyExamplesWereReadIsStoredWhereTheSettingsSayItToo) {
  Harness job;
  job.Begin();
  job.Join(kData0, "a");
  EXPECT_EQ(job.state().training_examples, 0u);
  job.Tell(kData0, Counted(kExamples));
  EXPECT_EQ(job.state().training_examples, kExamples);
}

TEST(StartTest, AnInvalidJobEndsWithTheMessageAsItIs) {
  Harness job(UncountedJob());
  job.Begin();
  job.Join(kData0, "a");
  job.Tell(kData0,
           Failure{.message = "spec.data.train.idx.images: no", .fatal = true, .invalid = true});
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_EQ(job.state().message, "spec.data.train.idx.images: no");
  EXPECT_TRUE(job.controller().Report().invalid);
}

TEST(StartTest, AServerThatLoadsForLongIsNotLostWhileItSaysSo) {
  JobSettings settings = UncountedJob();
  settings.data_servers = 1;
  Harness job(settings);
  job.Begin();
  job.Join(kData0, "a");
  job.Pass(std::chrono::minutes(9), {kData0});
  job.Tell(kData0, Loading{"fetching images: 40 %"});
  EXPECT_EQ(job.controller().Report().message, "data-server-0: fetching images: 40 %");
  EXPECT_THAT(Pick<KillProcess>(job.Pass(std::chrono::minutes(9), {kData0})), IsEmpty());
  job.Tell(kData0, Counted(60000));
  EXPECT_EQ(job.controller().Report().message, "");
  EXPECT_THAT(Pick<KillProcess>(job.Pass(std::chrono::minutes(1), {kData0})), SizeIs(5));
}

TEST(StartTest, HowLongAProcessIsSilentIsReported) {
  JobSettings settings = UncountedJob();
  settings.data_servers = 1;
  Harness job(settings);
  job.Begin();
  job.Join(kData0, "a");
  const auto silent = [&job] {
    const JobReport report = job.controller().Report();
    const auto found = std::ranges::find(report.members, kData0, &JobReport::MemberReport::id);
    return found == report.members.end() ? -1 : found->silent_seconds;
  };
  job.Pass(std::chrono::seconds(6), {kData0});
  EXPECT_EQ(silent(), 0) << "it may load for long";
  job.Tell(kData0, Counted(60000));
  job.Pass(std::chrono::seconds(6), {kData0});
  EXPECT_NEAR(silent(), 6, 0.01);
  job.Tell(kData0, Heartbeat{});
  EXPECT_NEAR(silent(), 0, 0.01);
}

}  // namespace
}  // namespace adamant::controller
