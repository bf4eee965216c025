// Epochs while no controller is there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "services/common/base/rng.h"
#include "tests/unit/services/data_server/core/scheduler_harness.h"

namespace adamant::data_server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr WorkerId kA{.slot = 0, .incarnation = 1};
constexpr Clock::Duration kTimeout = BatchSchedulerOptions{}.controller_timeout;

TEST(ControllerTimeoutTest, IsLongerThanAControllerWaitsForASilentProcess) {
  using std::chrono::seconds;
  EXPECT_EQ(ControllerTimeout(seconds(3)), seconds(15));
  EXPECT_EQ(ControllerTimeout(seconds(10)), seconds(15));
  EXPECT_EQ(ControllerTimeout(seconds(60)), seconds(90));
  EXPECT_EQ(ControllerTimeout(std::chrono::hours(1)), std::chrono::minutes(90));
}

// One data server and one worker; an epoch has 4 batches.
class AloneTest : public testing::Test {
 public:
  static BatchSchedulerOptions Options() {
    return {.batch_size = 10,
            .train_examples = 40,
            .validation_examples = 10,
            .epochs = 4,
            .target_accuracy = 0.5};
  }

  AloneTest() {
    h->Send(WorkView{.workers = {kA}, .part_owner = {0}});
    h->Send(Hello{.worker = kA, .window = 8});
    h->Send(OpenEpoch{.epoch = 1});
  }

  // The worker trains all that it is dispatched, for as long as it is dispatched anything.
  void Train() {
    for (auto batches = h->TakeDispatchedTo(kA); !batches.empty();
         batches = h->TakeDispatchedTo(kA)) {
      h->SendAcknowledge(kA, batches);
    }
  }

  // Another process takes the slot and finds the records.
  void Restart() {
    const FakeRecords records = h->records;
    const Clock::TimePoint now = h->now;
    BatchSchedulerOptions options = Options();
    options.incarnation = 2;
    h = std::make_unique<SchedulerHarness>(options);
    h->records = records;
    h->now = now;
    h->Send(WorkView{.workers = {kA}, .part_owner = {0}});
    h->Send(Hello{.worker = kA, .window = 8});
  }

  // Time passes; the worker is there, and does not hear the controller either.
  void Pass(Clock::Duration time) {
    for (const auto end = h->now + time; h->now < end;) {
      h->Wait(std::min<Clock::Duration>(seconds(1), end - h->now));
      h->Send(KeepAlive{.worker = kA});
    }
  }

  void LoseController() {
    h->Send(ControllerAway{});
    Pass(kTimeout);
  }

  void EvaluateAs(std::uint64_t correct) {
    h->Send(CloseEpoch{.epoch = 1});
    h->Send(Evaluate{.epoch = 1, .snapshot = 7});
    h->TakeDispatchedTo(kA);
    h->Send(
        Acknowledge{.worker = kA, .results = {{.lease = h->LeaseOf(kA, 0), .correct = correct}}});
  }

  [[nodiscard]] DataEpoch epoch() const { return h->scheduler.progress().decided_epoch; }

  std::unique_ptr<SchedulerHarness> h = std::make_unique<SchedulerHarness>(Options());
};

TEST_F(AloneTest, AnEndedEpochWaitsForTheControllerThatIsThere) {
  Train();
  h->Wait(std::chrono::hours(1));
  EXPECT_EQ(epoch(), 1u);
  EXPECT_THAT(h->Take<EpochEnded>(), SizeIs(1));
}

TEST_F(AloneTest, AnEndedEpochIsFollowedWhenTheControllerHasBeenAwayForLong) {
  Train();
  h->Send(ControllerAway{});
  EXPECT_EQ(h->scheduler.NextWake(), h->now + kTimeout);
  Pass(kTimeout - milliseconds(1));
  EXPECT_EQ(epoch(), 1u);
  Pass(milliseconds(1));
  EXPECT_EQ(epoch(), 2u);
  EXPECT_THAT(h->Take<OpenedAlone>(), ElementsAre(testing::Field(&OpenedAlone::epoch, 2u)));
  EXPECT_THAT(h->TakeDispatchedTo(kA), SizeIs(4));
  EXPECT_THAT(h->scheduler.progress().unattended,
              ElementsAre(UnattendedEpoch{.epoch = 1, .counted = 40}));
}

TEST_F(AloneTest, AnEpochThatEndsLaterIsFollowedAtOnceAndTheLastOneNever) {
  LoseController();
  EXPECT_GT(h->scheduler.NextWake(), h->now) << "no hot loop";
  Train();
  EXPECT_EQ(epoch(), 4u);
  h->Wait(std::chrono::hours(1));
  EXPECT_EQ(epoch(), 4u);
  EXPECT_FALSE(h->records.Get(0)->closed) << "the last epoch is the controller's to close";
  EXPECT_EQ(h->records.Get(0)->job_examples(), 160u);
  EXPECT_THAT(h->scheduler.progress().unattended, SizeIs(3));
}

TEST_F(AloneTest, AWorkerThatHearsTheControllerSpeaksForIt) {
  Train();
  h->Send(ControllerAway{});
  for (int i = 0; i < 60; ++i) {
    h->Wait(seconds(1));
    h->Send(KeepAlive{.worker = kA, .controller_heard = true});
  }
  EXPECT_EQ(epoch(), 1u);
  Pass(kTimeout);
  EXPECT_EQ(epoch(), 2u);
}

TEST_F(AloneTest, AControllerThatIsBackInTimeDecides) {
  Train();
  h->Send(ControllerAway{});
  h->Wait(kTimeout / 2);
  h->Send(ControllerBack{});
  h->Wait(kTimeout);
  EXPECT_EQ(epoch(), 1u);
}

TEST_F(AloneTest, ASlowControllerThatOpensTheSameEpochChangesNothing) {
  Train();
  LoseController();
  const auto dispatched = h->TakeDispatchedTo(kA);
  h->SendAcknowledge(kA, {dispatched[0]});
  h->Send(ControllerBack{});
  h->Send(OpenEpoch{.epoch = 2});
  EXPECT_EQ(h->scheduler.progress().counted_examples, 10u);
  EXPECT_THAT(h->scheduler.progress().unattended, IsEmpty()) << "it knows of the one before";
  h->SendAcknowledge(kA, {dispatched[1], dispatched[2], dispatched[3]});
  EXPECT_EQ(h->records.Get(0)->job_examples(), 80u);
}

TEST_F(AloneTest, AControllerThatComesBackBehindIsTold) {
  Train();
  LoseController();
  Train();
  h->Send(ControllerBack{});
  const std::uint64_t now_in = epoch();
  h->Send(OpenEpoch{.epoch = 1});
  h->Send(CloseEpoch{.epoch = 1});
  h->Send(Evaluate{.epoch = 1, .snapshot = 1});
  EXPECT_EQ(epoch(), now_in);
  EXPECT_THAT(h->Take<PartClosed>(), IsEmpty());
  EXPECT_THAT(h->Take<Evaluated>(), IsEmpty());
  EXPECT_THAT(h->scheduler.progress().unattended, SizeIs(now_in - 1));
}

TEST_F(AloneTest, AControllerThatComesBackBetweenCloseAndOpenClosesAgain) {
  Train();
  h->answer = false;
  LoseController();
  const auto close = h->Take<WriteRecord>();
  ASSERT_THAT(close, SizeIs(1));
  h->answer = true;
  h->Send(ControllerBack{});
  h->Send(h->records.Write(close[0]));
  EXPECT_EQ(epoch(), 1u);
  h->Take<EpochEnded>();
  EXPECT_THAT(h->Take<PartClosed>(), IsEmpty()) << "no controller has asked";
  h->Send(OpenEpoch{.epoch = 1});
  EXPECT_THAT(h->Take<EpochEnded>(), SizeIs(1));
  h->Send(CloseEpoch{.epoch = 1});
  EXPECT_THAT(h->Take<PartClosed>(),
              ElementsAre(testing::Field(&PartClosed::counted_examples, 40u)));
}

TEST_F(AloneTest, AClosedEpochIsFollowedWhenTheControllerGoesBeforeItsEvaluation) {
  Train();
  h->Send(CloseEpoch{.epoch = 1});
  LoseController();
  EXPECT_EQ(epoch(), 2u);
}

TEST_F(AloneTest, AnEvaluationIsFinishedFirst) {
  Train();
  h->Send(CloseEpoch{.epoch = 1});
  h->Send(Evaluate{.epoch = 1, .snapshot = 7});
  LoseController();
  EXPECT_EQ(epoch(), 1u);
  h->TakeDispatchedTo(kA);
  h->Send(Acknowledge{.worker = kA, .results = {{.lease = h->LeaseOf(kA, 0), .correct = 4}}});
  EXPECT_EQ(epoch(), 2u);
}

TEST_F(AloneTest, NothingFollowsAnEvaluationThatReachedTheTarget) {
  Train();
  EvaluateAs(5);
  LoseController();
  EXPECT_EQ(epoch(), 1u);
}

TEST_F(AloneTest, AnEvaluationBelowTheTargetIsFollowed) {
  Train();
  EvaluateAs(4);
  LoseController();
  EXPECT_EQ(epoch(), 2u);
}

TEST_F(AloneTest, AnotherProcessGoesOnWhereTheRecordIsAndKnowsWhatNobodyHeard) {
  Train();
  LoseController();
  const auto dispatched = h->TakeDispatchedTo(kA);
  h->SendAcknowledge(kA, {dispatched[2]});
  Restart();
  h->Send(OpenEpoch{.epoch = 1});  // the controller that started it has not heard
  EXPECT_EQ(epoch(), 2u);
  EXPECT_THAT(h->scheduler.progress().unattended, SizeIs(1));
  h->Send(OpenEpoch{.epoch = 2});
  EXPECT_THAT(h->TakeDispatchedTo(kA), ElementsAre(0, 1, 3));
  EXPECT_THAT(h->records.Get(0)->unattended, IsEmpty());
}

TEST_F(AloneTest, AnotherProcessWithoutAControllerGoesOnToo) {
  Train();
  LoseController();
  Restart();
  LoseController();
  Train();
  EXPECT_EQ(epoch(), 4u);
  EXPECT_EQ(h->records.Get(0)->job_examples(), 160u);
}

TEST_F(AloneTest, WhatAnotherServerHasWrittenMeanwhileStands) {
  Train();
  h->Send(CloseEpoch{.epoch = 1});
  h->answer = false;
  LoseController();
  const auto open = h->Take<WriteRecord>();
  ASSERT_THAT(open, SizeIs(1));
  Ledger other = *h->records.Get(0);
  other.writer_incarnation = 9;
  h->records.Write(
      {.part = 0, .expected_version = open[0].expected_version, .value = SerializeLedger(other)});
  h->answer = true;
  h->Send(ControllerBack{});
  h->Send(h->records.Write(open[0]));
  h->Wait(seconds(2));
  EXPECT_EQ(h->records.Get(0)->epoch, 1u);
  EXPECT_EQ(epoch(), 1u);
}

// --- Several data servers

// Two data servers and one worker that trains everything; records and servers are slow or away at
// random, a controller comes and goes. Whatever happens, each batch is counted once in each epoch,
// all parts pass through all epochs up to the last, and the rows that nobody heard are complete.
class Pair {
 public:
  explicit Pair(std::uint64_t seed) : rng_(seed) {
    for (std::uint32_t slot = 0; slot < 2; ++slot) {
      schedulers_.push_back(std::make_unique<BatchScheduler>(
          BatchSchedulerOptions{.slot = slot,
                                .parts = 2,
                                .batch_size = 4,
                                .train_examples = 42,
                                .validation_examples = 4,
                                .epochs = kEpochs,
                                .epoch_completion = seed % 2 == 0 ? 1 : 0.75}));
      Give(slot, WorkView{.workers = {kA}, .part_owner = {0, 1}});
      Give(slot, Hello{.worker = kA, .window = 3});
      Give(slot, OpenEpoch{.epoch = 1});
      Give(slot, ControllerAway{});
    }
  }

  static constexpr std::uint64_t kEpochs = 5;

  // Everything that waits happens, and much time passes.
  void Settle() {
    for (int i = 0; i < 4000; ++i) {
      Step();
      now_ += milliseconds(20);
    }
  }

  void Give(std::uint32_t slot, const Input& input) {
    for (const Output& output : schedulers_[slot]->Handle(input, now_)) {
      if (const auto* dispatch = std::get_if<Dispatch>(&output)) {
        pending_.emplace_back([this, slot, lease = dispatch->lease] {
          Give(slot, Acknowledge{.worker = kA, .results = {{.lease = lease}}});
        });
      } else if (const auto* read = std::get_if<ReadRecord>(&output)) {
        pending_.emplace_back([this, slot, read = *read] { Give(slot, records_.Read(read)); });
      } else if (const auto* write = std::get_if<WriteRecord>(&output)) {
        pending_.emplace_back([this, slot, write = *write] { Give(slot, records_.Write(write)); });
      }
    }
  }

  [[nodiscard]] const FakeRecords& records() const { return records_; }

 private:
  void Step() {
    now_ += milliseconds(rng_.Below(40));
    const auto slot = static_cast<std::uint32_t>(rng_.Below(2));
    if (pending_.empty() || rng_.Below(4) == 0) {
      Give(slot, KeepAlive{.worker = kA});
      return Give(slot, Tick{});
    }
    const auto next = pending_.begin() + static_cast<std::ptrdiff_t>(rng_.Below(pending_.size()));
    const std::function<void()> happens = std::move(*next);
    pending_.erase(next);
    happens();
  }

  Rng rng_;
  FakeRecords records_;
  std::vector<std::unique_ptr<BatchScheduler>> schedulers_;
  std::vector<std::function<void()>> pending_;
  Clock::TimePoint now_ = Clock::TimePoint(seconds(1000));
};

TEST(AlonePairTest, AllPartsPassThroughAllEpochsTogether) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Pair pair(seed);
    pair.Settle();
    std::uint64_t total = 0;
    for (std::uint32_t part = 0; part < 2; ++part) {
      EXPECT_EQ(pair.records().Get(part)->epoch, Pair::kEpochs) << "seed " << seed;
      total += pair.records().Get(part)->job_examples();
    }
    const std::vector<UnattendedEpoch> rows = pair.records().Get(0)->unattended;
    ASSERT_THAT(rows, SizeIs(Pair::kEpochs - 1)) << "seed " << seed;
    for (const UnattendedEpoch& row : rows) {
      EXPECT_GE(row.counted, seed % 2 == 0 ? 42u : 31u);
      EXPECT_EQ(row.counted + row.left, 42u);
      total -= row.counted;
    }
    EXPECT_EQ(total, 42u) << "the last epoch is trained to its end, seed " << seed;
  }
}

TEST(AlonePairTest, AServerThatHearsTheControllerFollowsItsCommandsOnly) {
  Pair pair(2);
  pair.Give(1, ControllerBack{});
  pair.Settle();
  EXPECT_EQ(pair.records().Get(0)->epoch, 1u) << "part 1 is not closed";
  EXPECT_TRUE(pair.records().Get(0)->closed);
  EXPECT_FALSE(pair.records().Get(1)->closed);
  pair.Give(1, CloseEpoch{.epoch = 1});
  pair.Settle();
  EXPECT_EQ(pair.records().Get(0)->epoch, 2u);
  EXPECT_EQ(pair.records().Get(1)->epoch, 1u);
}

}  // namespace
}  // namespace adamant::data_server
