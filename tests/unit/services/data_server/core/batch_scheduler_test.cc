#include "services/data_server/core/batch_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/services/data_server/core/scheduler_fixture.h"

namespace adamant::data_server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(BatchSchedulerTest, LeasesOfDifferentDataServersDiffer) {
  Begin(1);
  BatchSchedulerOptions options = Options();
  options.slot = 1;
  SchedulerHarness other(options);
  other.Send(View({kA}, {1}));
  other.Send(Hello{.worker = kA, .window = 1});
  other.Send(OpenEpoch{.epoch = 1});
  EXPECT_THAT(h.TakeDispatchedTo(kA), ElementsAre(0));
  EXPECT_THAT(other.TakeDispatchedTo(kA), ElementsAre(0));
  EXPECT_EQ(h.LeaseOf(kA, 0).batch, other.LeaseOf(kA, 0).batch);
  EXPECT_NE(h.LeaseOf(kA, 0).id, other.LeaseOf(kA, 0).id);
}

// A result under a lease of the life before must not be taken for that of a lease that was granted
// since.
TEST_F(BatchSchedulerTest, LeasesOfOneDataServersLivesDiffer) {
  Begin(1);
  BatchSchedulerOptions options = Options();
  options.incarnation = 2;
  SchedulerHarness restarted(options);
  restarted.Send(View({kA}));
  restarted.Send(Hello{.worker = kA, .window = 1});
  restarted.Send(OpenEpoch{.epoch = 1});
  EXPECT_THAT(h.TakeDispatchedTo(kA), ElementsAre(0));
  EXPECT_THAT(restarted.TakeDispatchedTo(kA), ElementsAre(0));
  EXPECT_NE(h.LeaseOf(kA, 0).id, restarted.LeaseOf(kA, 0).id);
}

TEST_F(BatchSchedulerTest, DispatchesInOrderOneBatchPerFreePlace) {
  Begin(3);
  EXPECT_THAT(h.TakeDispatchedTo(kA), ElementsAre(0, 1, 2));
  h.SendAcknowledge(kA, {1});
  EXPECT_THAT(h.TakeDispatchedTo(kA), ElementsAre(3));
  const auto answers = h.Take<Acknowledged>();
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].leases[0].batch.index, 1u);
  EXPECT_THAT(answers[0].duplicates, IsEmpty());
  EXPECT_EQ(h.scheduler.progress().counted_examples, 10u);
  EXPECT_EQ(h.scheduler.progress().dispatched_examples, 30u);
}

TEST_F(BatchSchedulerTest, BatchesCarryTheExamplesAcknowledgedBefore) {
  Begin(1);
  EXPECT_EQ(h.Take<Dispatch>()[0].job_examples, 0u);
  h.Send(Acknowledge{.worker = kA, .results = {{.lease = {.batch = {.epoch = 1}, .id = 12345}}}});
  EXPECT_EQ(h.scheduler.progress().job_examples, 10u) << "a result under another lease counts too";
}

// Progress is then where the middle of the batch will be when all before it have arrived.
TEST_F(BatchSchedulerTest, BatchesCarryTheExamplesThatAreUnderWay) {
  Begin(3);
  std::vector<std::uint64_t> ahead;
  for (const Dispatch& dispatch : h.Take<Dispatch>()) {
    EXPECT_EQ(dispatch.job_examples, 0u);
    ahead.push_back(dispatch.ahead_examples);
    h.leases[kA].push_back(dispatch.lease);
  }
  EXPECT_THAT(ahead, ElementsAre(5, 15, 25));
  h.SendAcknowledge(kA, {1});
  const Dispatch next = h.Take<Dispatch>()[0];
  EXPECT_EQ(next.job_examples, 10u);
  EXPECT_EQ(next.ahead_examples, 25u) << "two are under way";
  h.leases[kA].push_back(next.lease);
  h.Send(HandBack{.worker = kA, .leases = {h.LeaseOf(kA, 0)}});
  const Dispatch again = h.Take<Dispatch>()[0];
  EXPECT_EQ(again.lease.batch.index, 0u);
  EXPECT_EQ(again.ahead_examples, 25u) << "it was back";
}

TEST_F(BatchSchedulerTest, AcknowledgesOnlyWhenTheLedgerIsStored) {
  Begin(3);
  h.TakeDispatchedTo(kA);
  h.answer = false;
  h.SendAcknowledge(kA, {0});
  const auto writes = h.Take<WriteRecord>();
  ASSERT_THAT(writes, SizeIs(1));
  h.SendAcknowledge(kA, {1});
  h.SendAcknowledge(kA, {2});
  EXPECT_THAT(h.Take<WriteRecord>(), IsEmpty()) << "one write is under way";
  EXPECT_THAT(h.Take<Acknowledged>(), IsEmpty());
  h.Send(h.records.Write(writes[0]));
  EXPECT_THAT(h.Take<Acknowledged>(),
              ElementsAre(testing::Field(&Acknowledged::leases, SizeIs(1))));
  const auto folded = h.Take<WriteRecord>();
  ASSERT_THAT(folded, SizeIs(1));
  h.Send(h.records.Write(folded[0]));
  EXPECT_THAT(h.Take<Acknowledged>(),
              ElementsAre(testing::Field(&Acknowledged::leases, SizeIs(2))));
  EXPECT_EQ(h.records.Get(0)->counted_examples, 30u);
}

TEST_F(BatchSchedulerTest, RepeatedResultIsAnsweredOnceAndThenADuplicate) {
  Begin(2);
  h.TakeDispatchedTo(kA);
  h.answer = false;
  h.SendAcknowledge(kA, {0});
  h.SendAcknowledge(kA, {0});
  h.Send(h.records.Write(h.Take<WriteRecord>()[0]));
  h.answer = true;
  ASSERT_THAT(h.Take<Acknowledged>(), SizeIs(1));
  h.SendAcknowledge(kA, {0});
  EXPECT_THAT(h.Take<Acknowledged>(),
              ElementsAre(testing::Field(&Acknowledged::duplicates, ElementsAre(0))));
  EXPECT_EQ(h.scheduler.progress().counted_examples, 10u);
}

TEST_F(BatchSchedulerTest, HandedBackBatchIsDealtFirstAndIsNotRetrained) {
  Begin(2);
  h.TakeDispatchedTo(kA);
  h.Send(HandBack{.worker = kA, .leases = {h.LeaseOf(kA, 0)}});
  EXPECT_THAT(h.TakeDispatchedTo(kA), ElementsAre(0));
  EXPECT_EQ(h.scheduler.progress().retrained_examples, 0u);
}

TEST_F(BatchSchedulerTest, LeaseOfASilentWorkerEndsAfterTenSeconds) {
  Begin(2);
  h.TakeDispatchedTo(kA);
  h.Send(Hello{.worker = kB, .window = 2});
  EXPECT_THAT(h.TakeDispatchedTo(kB), ElementsAre(2, 3));
  h.now += seconds(9);
  h.Send(KeepAlive{.worker = kB});
  EXPECT_EQ(h.scheduler.NextWake(), h.now + seconds(1));
  h.Wait(seconds(1));
  h.SendAcknowledge(kB, {2, 3});
  EXPECT_THAT(h.TakeDispatchedTo(kB), ElementsAre(0, 1));
  EXPECT_EQ(h.scheduler.progress().retrained_examples, 20u);
  EXPECT_EQ(h.records.Get(0)->retrained_examples, 20u) << "stored, whatever comes after";
  // The first one to come counts, under whatever lease.
  h.SendAcknowledge(kA, {0});
  h.Take<Acknowledged>();
  h.SendAcknowledge(kB, {0});
  EXPECT_THAT(h.Take<Acknowledged>(),
              ElementsAre(testing::Field(&Acknowledged::duplicates, ElementsAre(0))));
  EXPECT_EQ(h.scheduler.progress().counted_examples, 30u);
}

TEST_F(BatchSchedulerTest, KeepAliveRenewsAllLeases) {
  Begin(2);
  h.TakeDispatchedTo(kA);
  for (int i = 0; i < 30; ++i) {
    h.Wait(seconds(1));
    h.Send(KeepAlive{.worker = kA});
  }
  h.Send(Hello{.worker = kB, .window = 1});
  EXPECT_THAT(h.TakeDispatchedTo(kB), ElementsAre(2));
}

TEST_F(BatchSchedulerTest, BatchesOfAWorkerThatLeavesTheMembershipAreDealtAgain) {
  Begin(3);
  h.TakeDispatchedTo(kA);
  h.Send(Hello{.worker = kB, .window = 4});
  EXPECT_THAT(h.TakeDispatchedTo(kB), ElementsAre(3, 4, 5, 6));
  h.SendAcknowledge(kB, {3});
  h.TakeDispatchedTo(kB);
  h.Send(View({kA, kB}));
  h.Send(View({kB}));
  EXPECT_THAT(h.Take<Disconnect>(), ElementsAre(testing::Field(&Disconnect::to, kA)));
  h.SendAcknowledge(kB, {4, 5, 6, 7});
  EXPECT_THAT(h.TakeDispatchedTo(kB), ElementsAre(0, 1, 2, 8));
  EXPECT_EQ(h.scheduler.progress().retrained_examples, 30u);
}

TEST_F(BatchSchedulerTest, WorkerThatNoViewListsYetIsKept) {
  h.Send(View({}));
  h.Send(Hello{.worker = kA, .window = 1});
  h.Send(View({kB}));
  EXPECT_THAT(h.Take<Disconnect>(), IsEmpty());
  h.Send(View({{.slot = 0, .incarnation = 2}}));
  EXPECT_THAT(h.Take<Disconnect>(), SizeIs(1)) << "another process has its slot";
}

TEST_F(BatchSchedulerTest, NewProcessOnTheSlotGetsItsBatchesAndTheOldOneIsRefused) {
  Begin(2);
  h.TakeDispatchedTo(kA);
  const WorkerId next{.slot = 0, .incarnation = 2};
  h.Send(Hello{.worker = next, .window = 2});
  EXPECT_THAT(h.TakeDispatchedTo(next), ElementsAre(0, 1));
  h.Take<HelloAnswer>();
  h.Send(Hello{.worker = kA, .window = 2});
  EXPECT_THAT(h.Take<HelloAnswer>()[0].refused, HasSubstr("replaced by incarnation 2"));
  h.Send(Hello{.worker = next, .window = 0});
  EXPECT_THAT(h.Take<HelloAnswer>()[0].refused, HasSubstr("window must be 1 to"));
}

TEST_F(BatchSchedulerTest, AfterAReconnectTheWindowIsFreeAndOldLeasesEndInTime) {
  Begin(2);
  h.TakeDispatchedTo(kA);
  h.Send(WorkerDisconnected{.worker = kA});
  h.Send(KeepAlive{.worker = kA});
  EXPECT_THAT(h.TakeDispatchedTo(kA), IsEmpty());
  h.Send(Hello{.worker = kA, .window = 2});
  EXPECT_THAT(h.TakeDispatchedTo(kA), ElementsAre(2, 3));
  h.SendAcknowledge(kA, {0});  // trained before the stream broke
  EXPECT_THAT(h.TakeDispatchedTo(kA), IsEmpty()) << "its place was of the old stream";
  for (int i = 0; i < 10; ++i) {
    h.Wait(seconds(1));
    h.Send(KeepAlive{.worker = kA});
  }
  h.SendAcknowledge(kA, {2, 3});
  EXPECT_THAT(h.TakeDispatchedTo(kA), ElementsAre(1, 4));
}

TEST_F(BatchSchedulerTest, TellsWorkersOnceWhenNothingIsLeftToDeal) {
  Begin(6);
  h.Send(Hello{.worker = kB, .window = 3});
  EXPECT_THAT(h.Take<Drained>(), IsEmpty());
  h.TakeDispatchedTo(kA);
  h.TakeDispatchedTo(kB);
  h.SendAcknowledge(kB, {6});
  EXPECT_THAT(h.Take<Drained>(), SizeIs(2));
  h.TakeDispatchedTo(kB);
  h.SendAcknowledge(kB, {7});
  EXPECT_THAT(h.Take<Drained>(), IsEmpty());
  h.Send(HandBack{.worker = kA, .leases = {h.LeaseOf(kA, 5)}});
  EXPECT_THAT(h.TakeDispatchedTo(kA), ElementsAre(5));
  EXPECT_THAT(h.Take<Drained>(), ElementsAre(testing::Field(&Drained::to, kA)));
}

TEST_F(BatchSchedulerTest, ServerWithoutPartsTellsWorkersThatItHasNothing) {
  h.Send(View({kA}, {1}));
  h.Send(Hello{.worker = kA, .window = 1});
  for (DataEpoch epoch = 1; epoch <= 2; ++epoch) {
    h.Send(OpenEpoch{.epoch = epoch});
    EXPECT_THAT(h.Take<Drained>(), SizeIs(1));
    h.Send(KeepAlive{.worker = kA});
    EXPECT_THAT(h.Take<Drained>(), IsEmpty());
    h.Send(CloseEpoch{.epoch = epoch});
  }
}

TEST_F(BatchSchedulerTest, EpochEndsWhenAllIsCountedAndStored) {
  Begin(10);
  h.TakeDispatchedTo(kA);
  h.SendAcknowledge(kA, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(h.Take<EpochEnded>(), IsEmpty());
  h.answer = false;
  h.SendAcknowledge(kA, {9});
  EXPECT_THAT(h.Take<EpochEnded>(), IsEmpty()) << "not stored yet";
  h.answer = true;
  h.Send(h.records.Write(h.Take<WriteRecord>()[0]));
  EXPECT_THAT(h.Take<EpochEnded>(), ElementsAre(testing::Field(&EpochEnded::epoch, 1)));
  h.Send(OpenEpoch{.epoch = 1});
  EXPECT_THAT(h.Take<EpochEnded>(), SizeIs(1)) << "the command came again";
}

TEST_F(BatchSchedulerTest, ClosingVoidsLeasesAndReportsWhatIsLeft) {
  Begin(4);
  h.TakeDispatchedTo(kA);
  h.SendAcknowledge(kA, {0, 3});
  h.TakeDispatchedTo(kA);
  h.Take<Acknowledged>();
  h.Send(CloseEpoch{.epoch = 1});
  EXPECT_THAT(h.Take<EpochClosed>(), ElementsAre(testing::Field(&EpochClosed::to, kA)));
  const auto closed = h.Take<PartClosed>();
  ASSERT_THAT(closed, SizeIs(1));
  EXPECT_EQ(closed[0].counted_examples, 20u);
  EXPECT_EQ(closed[0].left_examples, 75u);
  EXPECT_TRUE(h.records.Get(0)->closed);
  h.SendAcknowledge(kA, {1});
  EXPECT_THAT(h.Take<Acknowledged>(),
              ElementsAre(testing::Field(&Acknowledged::duplicates, ElementsAre(0))));
  h.Send(CloseEpoch{.epoch = 1});
  EXPECT_THAT(h.Take<PartClosed>(), SizeIs(1)) << "the command came again";
  h.Send(OpenEpoch{.epoch = 1});
  EXPECT_THAT(h.TakeDispatchedTo(kA), IsEmpty()) << "an old command";
  h.Send(OpenEpoch{.epoch = 2});
  EXPECT_THAT(h.TakeDispatchedTo(kA), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(h.scheduler.progress().job_examples, 20u);
}

TEST(BatchSchedulerCompletionTest, EpochMayEndAtAShareOfTheExamples) {
  BatchSchedulerOptions options = Options();
  options.epoch_completion = 0.75;
  SchedulerHarness h(options);
  h.Send(View({kA}));
  h.Send(Hello{.worker = kA, .window = 10});
  h.Send(OpenEpoch{.epoch = 1});
  h.TakeDispatchedTo(kA);
  h.SendAcknowledge(kA, {0, 1, 2, 3, 4, 5, 6});
  EXPECT_THAT(h.Take<EpochEnded>(), IsEmpty());
  h.SendAcknowledge(kA, {9, 7});  // 75 of 95 are 0.789
  EXPECT_THAT(h.Take<EpochEnded>(), SizeIs(1));
}

TEST(BatchSchedulerWarmStartTest, OnlyWorkerZeroIsDealtBatchesUntilThen) {
  BatchSchedulerOptions options = Options();
  options.warm_start_examples = 30;
  SchedulerHarness h(options);
  h.Send(View({kA, kB}));
  h.Send(Hello{.worker = kB, .window = 2});
  h.Send(OpenEpoch{.epoch = 1});
  h.Send(Hello{.worker = kA, .window = 3});
  EXPECT_THAT(h.TakeDispatchedTo(kB), IsEmpty());
  EXPECT_THAT(h.TakeDispatchedTo(kA), ElementsAre(0, 1, 2));
  h.SendAcknowledge(kA, {0, 1});
  EXPECT_THAT(h.TakeDispatchedTo(kB), IsEmpty());
  h.SendAcknowledge(kA, {2});
  EXPECT_THAT(h.TakeDispatchedTo(kB), SizeIs(2));
}

TEST_F(BatchSchedulerTest, EvaluatesEachExampleOnceAndSumsInOrder) {
  Begin(2);
  h.TakeDispatchedTo(kA);
  h.Send(CloseEpoch{.epoch = 1});
  h.said.clear();
  h.Send(Evaluate{.epoch = 1, .snapshot = 1});
  h.Send(Hello{.worker = kB, .window = 1});
  std::vector<Dispatch> dispatches = h.Take<Dispatch>();
  ASSERT_THAT(dispatches, SizeIs(3));
  const auto result = [&](const Dispatch& dispatch, double loss, std::uint64_t correct) {
    h.Send(
        Acknowledge{.worker = dispatch.to,
                    .results = {{.lease = dispatch.lease, .loss_sum = loss, .correct = correct}}});
  };
  result(dispatches[2], 4, 5);
  result(dispatches[0], 1, 8);
  result(dispatches[0], 1, 8);
  EXPECT_THAT(h.Take<Acknowledged>()[2].duplicates, ElementsAre(0));
  EXPECT_THAT(h.Take<Evaluated>(), IsEmpty());
  // The last batch's worker is lost: the other one gets it.
  h.Send(View({kA, kB}));
  h.Send(View({kB}));
  dispatches = h.Take<Dispatch>();
  ASSERT_THAT(dispatches, SizeIs(1));
  EXPECT_EQ(dispatches[0].to, kB);
  EXPECT_EQ(dispatches[0].snapshot, 1u);
  result(dispatches[0], 2, 9);
  const auto evaluated = h.Take<Evaluated>();
  ASSERT_THAT(evaluated, SizeIs(1));
  EXPECT_EQ(evaluated[0].examples, 25u);
  EXPECT_EQ(evaluated[0].correct, 22u);
  EXPECT_EQ(evaluated[0].loss_sum, 7.0);
  EXPECT_EQ(evaluated[0].most_frequent, 4u);
  h.Send(Evaluate{.epoch = 1, .snapshot = 1});
  EXPECT_THAT(h.Take<Evaluated>(), SizeIs(1)) << "the command came again";
}

TEST_F(BatchSchedulerTest, UpcomingNamesWhatWillBeDealt) {
  Begin(2);
  h.TakeDispatchedTo(kA);
  h.Send(HandBack{.worker = kB, .leases = {}});
  const std::vector<BatchId> upcoming = h.scheduler.Upcoming(3);
  ASSERT_THAT(upcoming, SizeIs(3));
  h.SendAcknowledge(kA, {0, 1});
  EXPECT_THAT(h.TakeDispatchedTo(kA), ElementsAre(upcoming[0].index, upcoming[1].index));
}

}  // namespace
}  // namespace adamant::data_server
