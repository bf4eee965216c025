#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/buckets/bucket_copies.h"
#include "operator/core/job/job_controller.h"
#include "tests/unit/operator/core/buckets/replication_fixture.h"
#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr SlotId kServer2{Role::kParameterServer, 2};

TEST_F(ReplicationTest, TheJobBeginsWhenEveryBucketHasItsCopies) {
  EXPECT_EQ(job_.state().phase, Phase::kRunning);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_THAT(configuration(i).replicas, SizeIs(2));
    EXPECT_EQ(StateOf(i), "Ready");
  }
}

TEST(ReplicationStartTest, TheJobBeginsWithoutCopiesThatDoNotCome) {
  Harness job(ReplicatedJob());
  job.Begin();
  job.JoinAll();
  EXPECT_EQ(job.state().phase, Phase::kStarting);
  job.Pass(BucketCopies::kCopyTime - seconds(1));
  EXPECT_EQ(job.state().phase, Phase::kStarting);
  job.Pass(seconds(2));
  EXPECT_EQ(job.state().phase, Phase::kRunning);
}

TEST(ReplicationStartTest, ServersThatDieAgainAndAgainDoNotKeepTheJobFromBeginning) {
  JobSettings settings = ReplicatedJob();
  settings.restart_limit = 100;
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  for (int i = 0; i < 4; ++i) {
    job.Pass(BucketCopies::kCopyTime / 2);
    if (job.state().phase == Phase::kRunning) {
      return;
    }
    job.Exit(kServer2);
    job.Pass(seconds(2), {kServer2});
    job.ReplaceServer(2, "server-2 again, " + std::to_string(i));
  }
  ADD_FAILURE() << "it waits for copies that never come";
}

TEST_F(ReplicationTest, AProvedDeathIsPublishedAndTheSecondaryTakesOverAtOnce) {
  const ServerId dead = configuration(0).primary;
  const ServerId successor = Secondary(0);
  const auto exit = job_.Exit({Role::kParameterServer, dead.slot});
  EXPECT_THAT(Sent<Membership>(exit).back().second.dead, ElementsAre(dead));
  EXPECT_EQ(StateOf(0), "FailingOver");
  const auto actions = Promote(0, successor);
  ASSERT_TRUE(std::holds_alternative<Persist>(actions.front()));
  EXPECT_EQ(configuration(0).primary, successor);
  EXPECT_THAT(configuration(0).replicas, ElementsAre(successor));
  ASSERT_EQ(Pick<Promoted>(actions).size(), 1U);
  EXPECT_EQ(Pick<Promoted>(actions).front().buckets, 1U);
  EXPECT_EQ(Sent<Membership>(actions).back().second.buckets[0].primary, successor);
  BucketsReady ready;
  ready.buckets.push_back(
      {.bucket = 0,
       .configuration_version = configuration(0).version,
       .failover = FailoverTimes{.detect_seconds = 0.5, .reconcile_seconds = 0.25}});
  const auto phases =
      Pick<FailoverPhase>(job_.Tell({Role::kParameterServer, successor.slot}, ready));
  EXPECT_EQ(phases.size(), 3U);
  EXPECT_EQ(StateOf(0), "Degraded");
  const auto last = job_.controller().Report().last_failover;
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->failovers, 1u);
  EXPECT_DOUBLE_EQ(last->times.detect_seconds, 0.5);
}

TEST_F(ReplicationTest, SilenceAndAKillAreNoProof) {
  const ServerId silent = configuration(0).primary;
  const auto actions =
      job_.Pass(SmallJob().silence_timeout + seconds(2), {{Role::kParameterServer, silent.slot}});
  EXPECT_THAT(Pick<KillProcess>(actions), SizeIs(1));
  EXPECT_THAT(job_.state().dead, IsEmpty());
  EXPECT_EQ(configuration(0).primary, silent);
  job_.Exit({Role::kParameterServer, silent.slot});
  EXPECT_THAT(job_.state().dead, Contains(silent));
}

TEST_F(ReplicationTest, TheNextProcessStartsWhenTheLastHasEnded) {
  auto actions = job_.Pass(SmallJob().silence_timeout + seconds(5), {kServer2});
  EXPECT_THAT(Pick<KillProcess>(actions), SizeIs(1));
  EXPECT_THAT(Pick<StartProcess>(actions), IsEmpty());
  EXPECT_THAT(Pick<StartProcess>(job_.Exit(kServer2)), SizeIs(1));
}

TEST_F(ReplicationTest, ALockedFolderProvesThatTheProcessBeforeIsDead) {
  const ServerId before = configuration(0).primary;
  const SlotId id{Role::kParameterServer, before.slot};
  job_.Join(id, "another");
  EXPECT_THAT(job_.state().dead, IsEmpty());
  job_.Tell(id, StoredBuckets{.previous_incarnation = before.incarnation, .buckets = {}});
  EXPECT_THAT(job_.state().dead, Contains(before));
}

TEST_F(ReplicationTest, AStateThatIsOlderThanADiskEndsTheJobForGood) {
  const ServerId primary = configuration(0).primary;
  const SlotId id{Role::kParameterServer, primary.slot};
  job_.Tell(id, StoredBuckets{.previous_incarnation = primary.incarnation, .buckets = {}});
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_EQ(job_.state().end, EndKind::kStateIsOld);
  EXPECT_THAT(job_.state().message, HasSubstr("older than the disks"));
  EXPECT_THAT(job_.state().dead, IsEmpty());
  job_.RestartController();
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("older than the disks"));
}

TEST_F(ReplicationTest, AProposalOfAnOldConfigurationIsAnsweredWithTheMembership) {
  const ServerId primary = configuration(0).primary;
  const auto actions = Tell(primary,
                            {.bucket = 0,
                             .configuration_version = configuration(0).version - 1,
                             .kind = Proposal::Kind::kDrop,
                             .proposer = primary,
                             .subject = Secondary(0)});
  const auto sent = Sent<Membership>(actions);
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].first, job_.ConnectionOf({Role::kParameterServer, primary.slot}));
  EXPECT_THAT(Pick<Persist>(actions), IsEmpty());
}

TEST_F(ReplicationTest, OneMessageOfProposalsIsOneMembership) {
  const ServerId dead = configuration(0).primary;
  job_.Exit({Role::kParameterServer, dead.slot});
  Proposals proposals;
  ServerId by;
  for (std::uint32_t i = 0; i < 3; ++i) {
    if (configuration(i).primary != dead && configuration(i).Has(dead)) {
      by = configuration(i).primary;
      proposals.proposals.push_back({.bucket = i,
                                     .configuration_version = configuration(i).version,
                                     .kind = Proposal::Kind::kDrop,
                                     .proposer = by,
                                     .subject = dead});
    }
  }
  ASSERT_FALSE(proposals.proposals.empty());
  const auto actions = job_.Tell({Role::kParameterServer, by.slot}, proposals);
  EXPECT_THAT(Pick<Persist>(actions), SizeIs(1));
  EXPECT_THAT(Sent<Membership>(actions), SizeIs(6));  // once to each of those who are there
}

TEST_F(ReplicationTest, ANewPrimaryIsAskedForTheSnapshotThatIsNeeded) {
  job_.Tell(kData0, EpochEnded{1});
  job_.CloseParts();
  job_.Flush(kWorker0);
  job_.Flush(kWorker1);
  const std::uint64_t snapshot = job_.state().row.snapshot;
  for (std::uint32_t server = 0; server < 3; ++server) {
    job_.StoreSnapshot({Role::kParameterServer, server}, snapshot);
  }
  ASSERT_EQ(job_.state().step, Step::kEvaluating);
  const ServerId successor = Secondary(0);
  job_.Exit({Role::kParameterServer, configuration(0).primary.slot});
  EXPECT_THAT(Sent<TakeSnapshot>(Promote(0, successor)), IsEmpty());
  const auto asked = Sent<TakeSnapshot>(job_.Serve(successor.slot));
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_EQ(asked[0].second.snapshot, snapshot);
  EXPECT_EQ(asked[0].first, job_.ConnectionOf({Role::kParameterServer, successor.slot}));
}

// It had answered while it did not have the bucket.
TEST_F(ReplicationTest, APrimaryThatABucketComesBackToIsAskedForTheSnapshotAgain) {
  job_.Tell(kData0, EpochEnded{1});
  job_.CloseParts();
  job_.Flush(kWorker0);
  job_.Flush(kWorker1);
  ASSERT_EQ(job_.state().step, Step::kSnapshot);
  const ServerId primary = configuration(0).primary;
  const ServerId successor = Secondary(0);
  Tell(successor,
       {.bucket = 0,
        .configuration_version = configuration(0).version,
        .proposer = successor,
        .released = true});
  ASSERT_EQ(configuration(0).primary, successor);
  Tell(primary,
       {.bucket = 0,
        .configuration_version = configuration(0).version,
        .proposer = primary,
        .released = true});
  ASSERT_EQ(configuration(0).primary, primary);
  const auto asked = Sent<TakeSnapshot>(job_.Serve(primary.slot));
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_EQ(asked[0].second.snapshot, job_.state().row.snapshot);
  EXPECT_EQ(asked[0].first, job_.ConnectionOf({Role::kParameterServer, primary.slot}));
}

TEST_F(ReplicationTest, ADrainingServerGetsSuccessors) {
  const ServerId leaving = configuration(0).primary;
  const ServerId successor = Secondary(0);
  const auto views =
      Sent<Membership>(job_.Tell({Role::kParameterServer, leaving.slot}, Draining{}));
  ASSERT_FALSE(views.empty());
  EXPECT_EQ(views[0].second.buckets[0].successor, successor);
}

TEST_F(ReplicationTest, ADrainingServerLeavesBucketsThatOthersHoldBeforeItStops) {
  const ServerId leaving = configuration(0).primary;
  const auto is_secondary = [&](BucketId bucket) {
    return configuration(bucket).Has(leaving) && configuration(bucket).primary != leaving;
  };
  const auto view =
      Sent<Membership>(job_.Tell({Role::kParameterServer, leaving.slot}, Draining{}))[0].second;
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(view.buckets[i].departing == leaving, is_secondary(i)) << "bucket " << i;
  }
  const ServerId successor = Secondary(0);
  Tell(successor,
       {.bucket = 0,
        .configuration_version = configuration(0).version,
        .proposer = successor,
        .released = true});
  EXPECT_TRUE(configuration(0).Has(leaving)) << "it is needed until the successor serves";
  EXPECT_FALSE(configuration(0).departing);
  job_.Serve(successor.slot);
  EXPECT_EQ(configuration(0).departing, leaving);
  Tell(successor,
       {.bucket = 0,
        .configuration_version = configuration(0).version,
        .kind = Proposal::Kind::kDrop,
        .proposer = successor,
        .subject = leaving});
  EXPECT_THAT(configuration(0).replicas, ElementsAre(successor));
  EXPECT_FALSE(configuration(0).learner) << "the server that leaves may come back";
}

// Each bucket has as many replicas as must stay.
class MinInSyncTest : public ReplicationTest {
 protected:
  MinInSyncTest() : ReplicationTest(JobThatNeedsBoth()) {}

  static JobSettings JobThatNeedsBoth() {
    JobSettings settings = ReplicatedJob();
    settings.min_in_sync = 2;
    return settings;
  }
};

TEST_F(MinInSyncTest, APromotionKeepsAnOldPrimaryThatMayLive) {
  const ServerId silent = configuration(0).primary;
  const ServerId successor = Secondary(0);
  Promote(0, successor);
  EXPECT_EQ(configuration(0).primary, successor);
  EXPECT_THAT(configuration(0).replicas, UnorderedElementsAre(silent, successor));
}

TEST_F(MinInSyncTest, APromotionFromADeadPrimaryDoesNot) {
  const ServerId successor = Secondary(0);
  job_.Exit({Role::kParameterServer, configuration(0).primary.slot});
  Promote(0, successor);
  EXPECT_THAT(configuration(0).replicas, ElementsAre(successor));
}

TEST_F(MinInSyncTest, AReplicaThatMayLiveIsNotDropped) {
  const ServerId silent = Secondary(0);
  const ConfigurationVersion configuration_version = configuration(0).version;
  EXPECT_THAT(Sent<Membership>(Drop(0, silent)), SizeIs(1)) << "so that the primary knows";
  EXPECT_EQ(configuration(0).version, configuration_version);
  EXPECT_TRUE(configuration(0).Has(silent));
  job_.Exit({Role::kParameterServer, silent.slot});
  Drop(0, silent);
  EXPECT_THAT(configuration(0).replicas, ElementsAre(configuration(0).primary));
}

TEST(ReplicationStartTest, ABucketThatWasNeverCreatedMovesToALivingServer) {
  Harness job(ReplicatedJob());
  job.Begin();
  for (std::uint32_t server = 0; server < 3; ++server) {
    job.Join({Role::kParameterServer, server}, "server-" + std::to_string(server));
    job.ReportDisk(server);
  }
  job.Exit(kServer0);
  EXPECT_EQ(job.state().buckets[0].version, 2u);
  EXPECT_EQ(job.state().buckets[0].generation, 1u);
  EXPECT_NE(job.state().buckets[0].primary.slot, 0u);
}

TEST(ReplicationStartTest, AControllerThatKnowsThatNobodyLivesNeedsNoProof) {
  Harness job(ReplicatedJob());
  job.Begin();
  job.JoinAll();
  job.RestartController({.others = false});
  EXPECT_THAT(job.state().dead, SizeIs(3));
}

TEST(HeldUpTest, AControllerThatWasHeldUpGivesItsMembersTime) {
  Harness job;
  job.Begin();
  job.JoinAll();
  job.Sleep(seconds(60));
  EXPECT_THAT(Pick<KillProcess>(job.Handle(Tick{})), IsEmpty());
  EXPECT_THAT(Pick<KillProcess>(job.Pass(SmallJob().silence_timeout + milliseconds(1), {kWorker0})),
              SizeIs(1));
}

// Found by seed 3062610 of the cluster simulation.
TEST_F(ReplicationTest, TheEndOfWhoWasStartedInPlaceOfASurvivorProvesNothingOfThatOne) {
  std::vector<StartProcess> running = job_.controller().Wanted();
  std::erase_if(running, [](const StartProcess& process) { return process.id == kServer2; });
  job_.RestartController({.running = running});  // it has not seen server 2, which lives
  const std::uint64_t started = job_.state().slots[SlotIndex(ReplicatedJob(), kServer2)].generation;
  ASSERT_EQ(started, 2u);
  Join join;
  join.id = kServer2;
  join.uid = ToString(kServer2);
  join.address = "there:1";
  join.incarnation = 1;
  join.generation = 1;
  job_.Handle(Received{1'000, join});
  job_.Exit(kServer2, "exited with code 1");
  EXPECT_THAT(job_.state().dead, IsEmpty());
}

}  // namespace
}  // namespace adamant::controller
