#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/job_controller.h"
#include "tests/unit/operator/core/harness.h"

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
    const Holder primary{.slot = i % 2, .incarnation = 1};
    EXPECT_EQ(job.state().buckets[i].epoch, 1u);
    EXPECT_EQ(job.state().buckets[i].primary, primary);
    EXPECT_THAT(job.state().buckets[i].members, ElementsAre(primary));
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

  refused = Sent<Refused>(job.Join({Role::kWorker, 7}, "y"));
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

}  // namespace
}  // namespace adamant::controller
