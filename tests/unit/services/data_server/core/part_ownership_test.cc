// A part that goes from one data server to another, and its ledger.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/services/data_server/core/scheduler_fixture.h"

namespace adamant::data_server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class PartOwnershipTest : public BatchSchedulerTest {};

TEST_F(PartOwnershipTest, NewOwnerDealsWhatTheRecordLeaves) {
  Begin(4);
  h.TakeDispatchedTo(kA);
  h.SendAcknowledge(kA, {0, 2});
  BatchSchedulerOptions options = Options();
  options.slot = 1;
  SchedulerHarness next(options);
  next.records = h.records;
  next.Send(Hello{.worker = kA, .window = 4});
  next.Send(OpenEpoch{.epoch = 1});
  EXPECT_THAT(next.TakeDispatchedTo(kA), IsEmpty()) << "the part is not its own";
  // A result that comes before the record is read waits for it.
  next.answer = false;
  next.Send(View({kA}, {1}));
  next.Send(Acknowledge{.worker = kA, .results = {{.lease = h.LeaseOf(kA, 1)}}});
  next.answer = true;
  EXPECT_EQ(next.scheduler.progress().epoch, 0u) << "what is counted of it is not known yet";
  next.Send(next.records.Read(next.Take<ReadRecord>()[0]));
  EXPECT_THAT(next.TakeDispatchedTo(kA), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(next.Take<Acknowledged>(), SizeIs(1));
  EXPECT_EQ(next.scheduler.progress().counted_examples, 30u);
  EXPECT_EQ(next.scheduler.progress().epoch, 1u);
}

TEST_F(PartOwnershipTest, MissedAnswerToItsOwnWriteIsRecognised) {
  Begin(2);
  h.TakeDispatchedTo(kA);
  h.answer = false;
  h.SendAcknowledge(kA, {0});
  const WriteRecord write = h.Take<WriteRecord>()[0];
  h.records.Write(write);
  h.Send(h.records.Write(write));  // tried again: a conflict with itself
  const auto reads = h.Take<ReadRecord>();
  ASSERT_THAT(reads, SizeIs(1));
  h.Send(h.records.Read(reads[0]));
  EXPECT_THAT(h.Take<Acknowledged>(), SizeIs(1));
  EXPECT_EQ(h.TakeDispatchedTo(kA).size(), 1u);
}

TEST_F(PartOwnershipTest, StopsDispatchingAPartThatAnotherServerWrites) {
  Begin(2);
  h.TakeDispatchedTo(kA);
  BatchSchedulerOptions options = Options();
  options.slot = 1;
  SchedulerHarness other(options);
  other.records = h.records;
  other.Send(View({kB}, {1}));
  other.Send(Hello{.worker = kB, .window = 1});
  other.Send(OpenEpoch{.epoch = 1});
  other.TakeDispatchedTo(kB);
  other.SendAcknowledge(kB, {0});
  h.records = other.records;
  h.SendAcknowledge(kA, {0, 1});
  EXPECT_THAT(h.TakeDispatchedTo(kA), ElementsAre(2, 3)) << "it does not know yet";
  h.SendAcknowledge(kA, {2});
  EXPECT_THAT(h.Take<Acknowledged>(), IsEmpty());
  h.Wait(milliseconds(900));
  EXPECT_THAT(h.TakeDispatchedTo(kA), IsEmpty());
  // Nobody took the part from it: it goes on from the record.
  h.Wait(milliseconds(100));
  const auto answers = h.Take<Acknowledged>();
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_THAT(answers[0].leases, SizeIs(3));
  EXPECT_THAT(answers[0].duplicates, ElementsAre(0));
  EXPECT_THAT(h.TakeDispatchedTo(kA), ElementsAre(3, 4))
      << "batch 3 is dispatched anew, its place is free";
  EXPECT_EQ(h.scheduler.progress().counted_examples, 30u);
}

TEST_F(PartOwnershipTest, PartTakenAwayIsDroppedAtOnce) {
  Begin(2);
  h.TakeDispatchedTo(kA);
  h.Send(View({kA, kB}, {1}));
  h.SendAcknowledge(kA, {0, 1});
  EXPECT_THAT(h.TakeDispatchedTo(kA), IsEmpty());
  EXPECT_THAT(h.Take<Acknowledged>(), IsEmpty()) << "the new owner answers";
  EXPECT_EQ(h.scheduler.progress().total_examples, 0u);
}

TEST_F(PartOwnershipTest, RecordOfOtherDataFailsTheJob) {
  Begin(2);
  BatchSchedulerOptions options = Options();
  options.batch_size = 7;
  SchedulerHarness other(options);
  other.records = h.records;
  other.Send(View({kA}));
  const auto failures = other.Take<Failed>();
  ASSERT_THAT(failures, SizeIs(1));
  EXPECT_THAT(failures[0].reason, HasSubstr("has 10 batches, this job's data gives 14"));
}

TEST_F(PartOwnershipTest, WithSeveralPartsTheOwnerOfPartZeroSumsAllRecords) {
  BatchSchedulerOptions options = Options();
  options.parts = 2;
  SchedulerHarness first(options);
  options.slot = 1;
  SchedulerHarness second(options);
  for (SchedulerHarness* server : {&first, &second}) {
    server->Send(View({kA}, {0, 1}));
    server->Send(Hello{.worker = kA, .window = 20});
    server->Send(OpenEpoch{.epoch = 1});
    server->SendAcknowledge(kA, server->TakeDispatchedTo(kA));
    EXPECT_THAT(server->Take<EpochEnded>(), IsEmpty());
  }
  first.answer = false;
  first.Wait(milliseconds(200));
  const auto reads = first.Take<ReadRecord>();
  ASSERT_THAT(reads, SizeIs(1));
  EXPECT_EQ(reads[0].part, 1u);
  RecordRead answer = second.records.Read(reads[0]);
  first.Send(answer);
  EXPECT_THAT(first.Take<EpochEnded>(), SizeIs(1));
  EXPECT_EQ(first.scheduler.progress().job_examples, 95u);
}

}  // namespace
}  // namespace adamant::data_server
