#include "operator/core/buckets/remains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/job/harness.h"

// What disks have left of a job of which no process lives.
namespace adamant::controller {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr std::uint64_t kBefore = 40;  // updates of each bucket in the checkpoint
constexpr std::uint32_t kBuckets = 4;

JobSettings LongJob() {
  JobSettings settings = SmallJob();
  settings.checkpoint_interval = std::chrono::seconds(5);
  return settings;
}

std::vector<std::string> Restored(const Harness::Actions& actions) {
  std::vector<std::string> texts;
  for (const Note& note : Pick<Note>(actions)) {
    if (note.kind == Note::Kind::kRestored) {
      texts.push_back(note.text);
    }
  }
  return texts;
}

JobState HeldBy(std::vector<ServerId> replicas) {
  JobState state;
  state.buckets.push_back({.replicas = std::move(replicas), .created = true});
  return state;
}

TEST(WhyDiskIsOldTest, AnEarlierProcessOpenedItLastThanHeldBuckets) {
  const JobState state = HeldBy({{.slot = 0, .incarnation = 3}, {.slot = 1, .incarnation = 2}});
  EXPECT_THAT(WhyDiskIsOld(state, {.slot = 0, .incarnation = 4}, 2),
              HasSubstr("incarnation 2 was the last to open it, and incarnation 3 has held"));
  EXPECT_EQ(WhyDiskIsOld(state, {.slot = 0, .incarnation = 4}, 3), "");
  EXPECT_EQ(WhyDiskIsOld(state, {.slot = 1, .incarnation = 4}, 2), "") << "another slot's";
}

TEST(WhyDiskIsOldTest, AnotherDiskOrTheSameProcessIsNotOld) {
  const JobState state = HeldBy({{.slot = 0, .incarnation = 3}});
  EXPECT_EQ(WhyDiskIsOld(state, {.slot = 0, .incarnation = 4}, 0), "") << "it is empty";
  EXPECT_EQ(WhyDiskIsOld(state, {.slot = 0, .incarnation = 3}, 2), "")
      << "it tells another controller what it found";
  JobState begun = state;
  begun.buckets[0].created = false;
  EXPECT_EQ(WhyDiskIsOld(begun, {.slot = 0, .incarnation = 4}, 2), "");
}

class RemainsTest : public testing::Test {
 protected:
  RemainsTest() : RemainsTest(LongJob()) {}

  explicit RemainsTest(const JobSettings& settings) : job_(settings) {
    job_.Begin();
    job_.JoinAll();
    job_.Pass(LongJob().checkpoint_interval);
    for (const SlotId worker : {kWorker0, kWorker1}) {
      job_.Tell(worker, PushesPaused{.checkpoint = job_.state().last_snapshot, .sequence = 7});
    }
    for (const SlotId server : {kServer0, kServer1}) {
      job_.StoreSnapshot(server, job_.state().last_snapshot, kBefore);
    }
  }

  /// Of each bucket, as its primary tells.
  void Apply(std::uint64_t updates) {
    for (BucketId bucket = 0; bucket < kBuckets; ++bucket) {
      const Configuration& configuration = job_.state().buckets[bucket];
      Heartbeat heartbeat;
      heartbeat.progress =
          ParameterServerProgress{.buckets = {{.bucket = bucket,
                                               .configuration_version = configuration.version,
                                               .updates = updates,
                                               .serving = true}}};
      job_.Tell({Role::kParameterServer, configuration.primary.slot}, heartbeat);
    }
  }

  void ApplyUpTo(std::uint64_t updates) {
    Apply(updates);
    job_.Exit(kWorker1);  // whereupon the controller stores what it knows
  }

  void MarkLost(const SlotId& server) {
    job_.Exit(server);
    job_.Join(server, "the next " + ToString(server));
  }

  /// Everything is killed and started again; the disks have `updates` of each bucket.
  Harness::Actions ResumeWith(std::uint64_t updates) {
    auto all = job_.RestartController({.others = false});
    for (std::size_t i = 0; i < job_.state().slots.size(); ++i) {
      const SlotId id = SlotAt(LongJob(), i);
      Harness::Append(all, job_.Join(id, ToString(id) + "-resumed"));
      Harness::Append(all, job_.Tell(id, Heartbeat{}));
    }
    Harness::Append(all, job_.ReportDisk(0, updates));
    Harness::Append(all, job_.ReportDisk(1, updates));
    return all;
  }

  [[nodiscard]] const std::vector<Configuration>& buckets() const { return job_.state().buckets; }

  [[nodiscard]] bool goes_back() const { return job_.state().recovery.going_back; }

  Harness job_;
};

TEST_F(RemainsTest, WhereMostIsLeftOfWhatCameAfterTheCheckpointItIsKept) {
  ApplyUpTo(60);
  EXPECT_THAT(Restored(ResumeWith(50)), IsEmpty()) << "as much is left as is gone";
  EXPECT_THAT(buckets(), Each(Field(&Configuration::restored_snapshot, 0)));
  job_.Serve(0, 50);
  EXPECT_THAT(Sent<OpenEpoch>(job_.Serve(1, 50)), SizeIs(2));
  EXPECT_EQ(job_.state().histories[0].rolled_back, 10u);
  job_.Tell(kWorker0, Heartbeat{.progress = WorkerProgress{.trained_examples = 90}});
  job_.TrainAndEvaluate(50);
  ASSERT_THAT(job_.results(), SizeIs(1));
  EXPECT_EQ(job_.results()[0].updates_lost, 4 * 10u) << "no worker had them any more";
  EXPECT_EQ(job_.controller().Report().updates_lost, 4 * 10u);
  job_.Tell(kWorker0,
            Heartbeat{.progress = WorkerProgress{.trained_examples = 180, .updates_lost = 7}});
  EXPECT_EQ(job_.controller().Report().updates_lost, 4 * 10u + 7) << "what a worker could not";
  job_.TrainAndEvaluate(50);
  EXPECT_EQ(job_.results().back().updates_lost, 7u);
  EXPECT_EQ(job_.state().updates_lost, 4 * 10u + 7) << "the results together";
  EXPECT_EQ(job_.controller().Report().updates_lost, 4 * 10u + 7);
}

// As when a bucket comes back from disk while the epoch is evaluated, and workers flush again.
TEST_F(RemainsTest, WhatWorkersFindToBeLostUntilTheEvaluationEndsIsOfThisEpoch) {
  job_.Tell(kWorker0,
            Heartbeat{.progress = WorkerProgress{.trained_examples = 90, .updates_lost = 2}});
  job_.TrainOnly();
  EXPECT_EQ(job_.controller().Report().updates_lost, 2u);
  job_.Tell(kWorker0,
            Heartbeat{.progress = WorkerProgress{.trained_examples = 90, .updates_lost = 9}});
  EXPECT_EQ(job_.controller().Report().updates_lost, 9u);
  job_.EvaluateAs(50);
  ASSERT_THAT(job_.results(), SizeIs(1));
  EXPECT_EQ(job_.results()[0].updates_lost, 9u);
  EXPECT_EQ(job_.state().updates_lost, 9u);
  EXPECT_EQ(job_.controller().Report().updates_lost, 9u);
}

TEST_F(RemainsTest, WhereMostIsGoneTheJobGoesBackToTheCheckpointAndNothingCountsAsLost) {
  ApplyUpTo(60);
  EXPECT_THAT(
      Restored(ResumeWith(49)),
      Contains("of the updates since checkpoint 1 the disks have 36 and lack at least 44; the "
               "job goes back to checkpoint 1, and trains again what came after it"));
  EXPECT_THAT(buckets(), Each(Field(&Configuration::restored_snapshot, 1)));
  job_.Serve(0, kBefore);
  const auto served = job_.Serve(1, kBefore);
  EXPECT_THAT(Sent<OpenEpoch>(served), SizeIs(2));
  EXPECT_THAT(Restored(served), Each(Not(HasSubstr("known to be lost"))));
  EXPECT_EQ(job_.state().histories[0].rolled_back, 0u);
  EXPECT_EQ(job_.state().recovery.undone_updates, 4 * 20u);
}

TEST_F(RemainsTest, WhereNothingIsLeftItGoesBackEvenIfTheControllerKnewOfNoUpdate) {
  job_.Tell(kData0, EpochEnded{1});  // it is counted, however
  EXPECT_THAT(Restored(ResumeWith(kBefore)),
              Contains(HasSubstr("no update since checkpoint 1 is on a disk")));
  EXPECT_THAT(buckets(), Each(Field(&Configuration::restored_snapshot, 1)));
  EXPECT_EQ(job_.state().step, Step::kTraining);
}

TEST_F(RemainsTest, ACheckpointThatIsNotOnADiskAnyMoreIsNotGoneBackTo) {
  ApplyUpTo(60);
  job_.RestartController({.others = false});
  for (const SlotId server : {kServer0, kServer1}) {
    job_.Join(server, ToString(server) + "-resumed");
  }
  job_.Tell(
      kServer1,
      StoredBuckets{.previous_incarnation = job_.ServerIdOf(1).incarnation - 1, .buckets = {}});
  StoredBuckets all{.previous_incarnation = job_.ServerIdOf(0).incarnation - 1, .buckets = {}};
  for (BucketId bucket = 0; bucket < kBuckets; ++bucket) {  // it held copies of all
    all.buckets.push_back(
        {.bucket = bucket, .generation = 1, .updates = kBefore, .complete = true});
  }
  job_.Tell(kServer0, all);
  EXPECT_THAT(buckets(), Each(Field(&Configuration::restored_snapshot, 0)));
  EXPECT_THAT(buckets(), Each(Field(&Configuration::generation, 2u)));
}

TEST_F(RemainsTest, OneServerThatIsAwayMayHaveTheRest) {
  ApplyUpTo(60);
  job_.RestartController({.others = false});
  const std::vector<Configuration> before = buckets();
  job_.Join(kServer0, "resumed");
  job_.ReportDisk(0, 41);
  EXPECT_EQ(buckets(), before) << "what is left of all decides";
  EXPECT_EQ(job_.controller().Report().buckets[0].state, "Restoring");
}

TEST_F(RemainsTest, WithoutAnUpdateSinceTheEndOfAnEpochNothingIsToBeDone) {
  JobState state;
  state.checkpoint = {.snapshot = 3, .buckets = {{.updates = kBefore}}};
  state.histories = {{.updates = kBefore}};
  const Restores::Sources sources = {{0, {.server = {}, .updates = kBefore}}};
  EXPECT_THAT(WhyBackToCheckpoint(state, sources), HasSubstr("no update"));
  state.recovery.first = state.checkpoint;
  EXPECT_THAT(WhyBackToCheckpoint(state, sources), HasSubstr("no update since the first weights"));
  state.row.snapshot = 3;
  EXPECT_EQ(WhyBackToCheckpoint(state, sources), "");
}

TEST_F(RemainsTest, WhatAnEpochEndedWithComesBackWhole) {
  JobState state;
  state.checkpoint = {.snapshot = 3, .buckets = {{.updates = kBefore}}};
  state.histories = {{.updates = kBefore - 5}};
  state.row.snapshot = 3;
  EXPECT_EQ(WhyBackToCheckpoint(state, {{0, {.server = {}, .updates = kBefore - 9}}}),
            "the disks lack 9 updates of checkpoint 3");
}

// A controller that lives sees all copies of a bucket die within an epoch.
class RemainsWithinAnEpochTest : public RemainsTest {
 protected:
  using RemainsTest::RemainsTest;

  /// Returns what is told of the job's going back.
  std::vector<std::string> LoseServerWithDisk(std::uint64_t updates) {
    MarkLost(kServer0);
    std::vector<std::string> texts;
    for (const Note& note : Pick<Note>(job_.ReportDisk(0, updates))) {
      if (note.kind == Note::Kind::kWentBack) {
        texts.push_back(note.text);
      }
    }
    EXPECT_EQ(goes_back(), !texts.empty());
    return texts;
  }
};

TEST_F(RemainsWithinAnEpochTest, OfWhatALostWorkerPushedTheCheckpointHasMoreThanTheDisk) {
  job_.Exit(kWorker1);
  Apply(60);
  EXPECT_THAT(LoseServerWithDisk(kBefore - 1),
              ElementsAre("all copies of bucket 0 are lost, the disk of parameter-server-0 has "
                          "no update of it since checkpoint 1, and no worker can send the rest "
                          "again; the job goes back to the model within epoch 1 (checkpoint 1) "
                          "and on as attempt 2; 80 updates are undone"));
}

TEST_F(RemainsWithinAnEpochTest, WorkersThatLiveSendTheRestAgain) {
  Apply(60);
  EXPECT_THAT(LoseServerWithDisk(1), IsEmpty());
  EXPECT_EQ(buckets()[0].generation, 2u) << "it comes back from the disk";
}

TEST_F(RemainsWithinAnEpochTest, ADiskThatHasAllThatTheLostWorkerPushedServes) {
  job_.Exit(kWorker1);
  Apply(60);
  EXPECT_THAT(LoseServerWithDisk(kBefore), IsEmpty());
}

TEST_F(RemainsWithinAnEpochTest, ALossThatWasBornOnceIsNoReasonAgain) {
  Apply(60);
  job_.Exit(kWorker1);
  EXPECT_THAT(LoseServerWithDisk(50), IsEmpty()) << "the checkpoint has no more";
  job_.Serve(0, 50);
  Apply(55);
  job_.Pass(LongJob().checkpoint_interval);
  job_.Tell(kWorker0, PushesPaused{.checkpoint = job_.state().last_snapshot, .sequence = 9});
  for (const SlotId server : {kServer0, kServer1}) {
    job_.StoreSnapshot(server, job_.state().last_snapshot, 55);
  }
  ASSERT_EQ(job_.state().checkpoint.buckets[0].updates, 55u);
  EXPECT_THAT(LoseServerWithDisk(52), IsEmpty()) << "worker-0 has the rest";
}

TEST_F(RemainsWithinAnEpochTest, WhoWasLostBeforeThisControllerIsNotKnown) {
  Apply(60);
  job_.RestartController({.others = true});
  job_.JoinAll();
  EXPECT_THAT(LoseServerWithDisk(kBefore - 1), SizeIs(1));
}

JobSettings WithoutRetaining() {
  JobSettings settings = LongJob();
  settings.workers_retain = false;
  return settings;
}

class RemainsWithoutRetainingTest : public RemainsWithinAnEpochTest {
 protected:
  RemainsWithoutRetainingTest() : RemainsWithinAnEpochTest(WithoutRetaining()) {}
};

TEST_F(RemainsWithoutRetainingTest, NobodySendsAnythingAgain) {
  Apply(60);
  EXPECT_THAT(LoseServerWithDisk(kBefore - 1), SizeIs(1));
}

TEST_F(RemainsWithoutRetainingTest, SoItIsWhereTheDiskHasWhatTheCheckpointHas) {
  Apply(60);
  EXPECT_THAT(LoseServerWithDisk(kBefore), SizeIs(1));
}

TEST_F(RemainsWithoutRetainingTest, SomeOfWhatCameAfterTheCheckpointIsGoneOnFrom) {
  Apply(60);
  EXPECT_THAT(LoseServerWithDisk(kBefore + 1), IsEmpty());
}

TEST_F(RemainsWithoutRetainingTest, NothingIsKnownToHaveComeAfterTheCheckpoint) {
  EXPECT_THAT(LoseServerWithDisk(kBefore), IsEmpty());
}

TEST_F(RemainsWithoutRetainingTest, ACheckpointOnADiskThatIsLostIsNotGoneBackTo) {
  Apply(60);
  MarkLost(kServer1);
  job_.Tell(
      kServer1,
      StoredBuckets{.previous_incarnation = job_.ServerIdOf(1).incarnation - 1, .buckets = {}});
  EXPECT_THAT(LoseServerWithDisk(kBefore), IsEmpty());
}

JobSettings WithLog() {
  JobSettings settings = WithoutRetaining();
  settings.logged = true;
  return settings;
}

class RemainsOfALogTest : public RemainsWithinAnEpochTest {
 protected:
  RemainsOfALogTest() : RemainsWithinAnEpochTest(WithLog()) {}
};

TEST_F(RemainsOfALogTest, ALogHasWhatItsDiskHasNotOutsideOfIt) {
  Apply(60);
  EXPECT_THAT(LoseServerWithDisk(kBefore - 1), IsEmpty());
}

// A controller that lives sees all copies die, of a job whose epoch has ended with a checkpoint.
class RemainsAfterTheEndTest : public RemainsTest {
 protected:
  RemainsAfterTheEndTest() {
    ApplyUpTo(kAtEnd);
    job_.Tell(kData0, EpochEnded{job_.state().epoch});
    job_.CloseParts();
    job_.Flush(kWorker0);
    job_.Flush(kWorker1);
    for (const SlotId server : {kServer0, kServer1}) {
      job_.StoreSnapshot(server, job_.state().row.snapshot, kAtEnd);
    }
  }

  static constexpr std::uint64_t kAtEnd = 60;
};

TEST_F(RemainsAfterTheEndTest, ABucketOfWhichDisksHaveLessComesBackFromTheCheckpoint) {
  MarkLost(kServer0);
  job_.ReportDisk(0, kAtEnd - 1);
  for (const Configuration& configuration : buckets()) {
    EXPECT_EQ(configuration.restored_snapshot,
              configuration.primary.slot == 0 ? job_.state().row.snapshot : 0);
  }
  job_.Serve(0, kAtEnd);
  EXPECT_EQ(job_.state().histories[0].rolled_back, 0u);
}

TEST_F(RemainsAfterTheEndTest, OnceTheNextEpochIsOpenTheLedgerHasGoneOnFromTheCheckpoint) {
  job_.EvaluateAs(50);
  ASSERT_EQ(job_.state().epoch, 2u);
  MarkLost(kServer0);
  job_.ReportDisk(0, kAtEnd - 1);
  EXPECT_THAT(buckets(), Each(Field(&Configuration::restored_snapshot, 0)));
  EXPECT_TRUE(goes_back()) << "parameters and ledger together";
}

TEST_F(RemainsAfterTheEndTest, WhatWentOnFromLessSinceTheCheckpointIsKept) {
  const std::optional<Restores::Source> less{{.updates = kAtEnd - 1, .generation = 0}};
  std::optional<Restores::Source> went_on = less;
  ++went_on->generation;
  JobState state = job_.state();
  state.checkpoint.buckets[0].generation = 0;
  EXPECT_TRUE(CheckpointHasMore(state, 0, less));
  EXPECT_FALSE(CheckpointHasMore(state, 0, went_on));
  EXPECT_TRUE(HasNothingSinceCheckpoint(state, 0, *less));
  EXPECT_FALSE(HasNothingSinceCheckpoint(state, 0, *went_on));
  state.buckets[0].generation = went_on->generation;
  state.buckets[0].restored_snapshot = state.checkpoint.snapshot;
  EXPECT_TRUE(HasNothingSinceCheckpoint(state, 0, *went_on)) << "it came from the checkpoint";
  state.row = {};
  EXPECT_FALSE(CheckpointHasMore(state, 0, less)) << "within an epoch";
  EXPECT_FALSE(CheckpointHasMore(state, 0, std::nullopt));
}

TEST_F(RemainsAfterTheEndTest, ADiskThatHasAllOfItServes) {
  MarkLost(kServer0);
  job_.ReportDisk(0, kAtEnd);
  EXPECT_THAT(buckets(), Each(Field(&Configuration::restored_snapshot, 0)));
}

TEST_F(RemainsAfterTheEndTest, WithoutADiskThatHasItTheCheckpointHasItStill) {
  MarkLost(kServer0);
  job_.Tell(
      kServer0,
      StoredBuckets{.previous_incarnation = job_.ServerIdOf(0).incarnation - 1, .buckets = {}});
  EXPECT_EQ(job_.state().phase, Phase::kEvaluating) << job_.state().message;
  EXPECT_THAT(buckets(),
              Contains(Field(&Configuration::restored_snapshot, job_.state().row.snapshot)));
}

TEST_F(RemainsAfterTheEndTest, WithoutAReadableCheckpointNoOtherModelIsTakenForIt) {
  MarkLost(kServer0);
  job_.ReportDisk(0, kAtEnd - 1);
  BucketsReady lost;
  for (BucketId bucket = 0; bucket < kBuckets; ++bucket) {
    if (buckets()[bucket].primary == job_.ServerIdOf(0)) {
      lost.buckets.push_back({.bucket = bucket,
                              .configuration_version = buckets()[bucket].version,
                              .lost = true,
                              .detail = "the copy is damaged"});
    }
  }
  job_.Tell(kServer0, lost);
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_THAT(job_.state().message, HasSubstr("the copy is damaged"));
}

}  // namespace
}  // namespace adamant::controller
