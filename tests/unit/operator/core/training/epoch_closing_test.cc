#include "operator/core/training/epoch_closing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/operator/core/job/job_parts.h"

namespace adamant::controller {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class EpochClosingTest : public JobParts {
 protected:
  EpochClosingTest() { BeginTraining(); }

  std::vector<Action> Start() {
    closing_.Start();
    return Take();
  }
  std::vector<Action> ClosePart(std::uint32_t part, DataEpoch epoch = 1) {
    closing_.OnPartClosed({.epoch = epoch, .part = part, .counted_examples = 45});
    return Take();
  }
  std::vector<Action> CloseParts() {
    ClosePart(0);
    return ClosePart(1);
  }
  std::vector<Action> Flush(SlotId worker, DataEpoch epoch = 1) {
    closing_.OnWorkerFlushed(worker.slot, {epoch});
    return Take();
  }
  std::vector<Action> FlushAll() {
    Flush(kWorker0);
    return Flush(kWorker1);
  }
  std::vector<Action> Repeat(SlotId id) {
    closing_.Repeat(id);
    return Take();
  }
  // A bucket comes back from disk, perhaps with less.
  void RollBackBucket() { ++state_.buckets[2].generation; }

  // The snapshot is still asked of a server that may not have heard.
  bool IsSnapshotNeeded() {
    snapshots_.Repeat(kServer0.slot);
    return !Sent<TakeSnapshot>(Take()).empty();
  }

  TrainingMeter meter_{state_};
  SnapshotCoordinator snapshots_{
      settings_, state_, outbox_, processes_, placement_.configurations()};
  ResultRecorder results_{settings_, state_, outbox_, meter_};
  EpochClosing closing_{
      state_, outbox_, processes_, placement_.configurations(), snapshots_, results_};
};

TEST_F(EpochClosingTest, StepsFollowEachOtherAsTheirAnswersCome) {
  EXPECT_THAT(Sent<CloseEpoch>(Start()), SizeIs(2));
  EXPECT_EQ(state_.step, Step::kClosing);
  EXPECT_THAT(ClosePart(0), IsEmpty());
  EXPECT_THAT(ClosePart(0), IsEmpty()) << "once more";
  EXPECT_THAT(ClosePart(1, 2), IsEmpty()) << "of another epoch";
  state_.epoch_active = std::chrono::seconds(30);
  EXPECT_THAT(Sent<FlushWorker>(ClosePart(1)), SizeIs(2));
  EXPECT_EQ(state_.row.epoch, 1u);
  EXPECT_EQ(state_.row.counted, 90u);
  EXPECT_EQ(state_.row.seconds, 30);
  EXPECT_THAT(Flush(kWorker0), IsEmpty());
  EXPECT_THAT(Flush(kWorker1, 2), IsEmpty()) << "of another epoch";
  const auto asked = Sent<TakeSnapshot>(Flush(kWorker1));
  ASSERT_THAT(asked, SizeIs(2));
  EXPECT_EQ(asked[0].second.snapshot, state_.row.snapshot);
  EXPECT_EQ(state_.row.snapshot, state_.last_snapshot);
  EXPECT_EQ(state_.step, Step::kSnapshot);
  closing_.StartEvaluating();
  const auto evaluate = Sent<Evaluate>(Take());
  ASSERT_THAT(evaluate, SizeIs(1));
  EXPECT_EQ(evaluate[0].first, ConnectionOf(kData0));
  EXPECT_EQ(evaluate[0].second.snapshot, state_.row.snapshot);
  EXPECT_EQ(state_.step, Step::kEvaluating);
}

TEST_F(EpochClosingTest, AMemberThatComesBackHearsTheCommandThatItHasNotAnswered) {
  EXPECT_THAT(Repeat(kData0), IsEmpty()) << "training goes on";
  Start();
  EXPECT_THAT(Sent<CloseEpoch>(Repeat(kData1)), SizeIs(1));
  CloseParts();
  Flush(kWorker0);
  EXPECT_THAT(Repeat(kWorker0), IsEmpty());
  EXPECT_THAT(Sent<FlushWorker>(Repeat(kWorker1)), SizeIs(1));
}

TEST_F(EpochClosingTest, AWorkerThatIsLostIsNotWaitedFor) {
  Start();
  CloseParts();
  Flush(kWorker0);
  closing_.OnWorkerLost(kWorker1.slot);
  EXPECT_THAT(Sent<TakeSnapshot>(Take()), SizeIs(2));
}

TEST_F(EpochClosingTest, WorkersFlushAgainWhatIsRolledBackMeanwhileOrLater) {
  Start();
  CloseParts();
  RollBackBucket();
  EXPECT_FALSE(closing_.OnConfigurationsChanged()) << "they have not flushed yet";
  EXPECT_THAT(Sent<FlushWorker>(FlushAll()), SizeIs(2));
  EXPECT_THAT(Sent<TakeSnapshot>(FlushAll()), SizeIs(2));
  EXPECT_FALSE(closing_.OnConfigurationsChanged()) << "nothing is rolled back";
  EXPECT_TRUE(IsSnapshotNeeded());
  const std::uint64_t snapshot = state_.row.snapshot;
  RollBackBucket();
  EXPECT_TRUE(closing_.OnConfigurationsChanged());
  EXPECT_THAT(Sent<FlushWorker>(Take()), SizeIs(2));
  EXPECT_FALSE(IsSnapshotNeeded());
  EXPECT_THAT(Sent<TakeSnapshot>(FlushAll()), SizeIs(2));
  EXPECT_EQ(state_.row.snapshot, snapshot) << "the same";
}

TEST_F(EpochClosingTest, TheDataTierIsAskedAgainOnlyWhileAnEpochIsClosed) {
  closing_.StartAgain();
  EXPECT_THAT(Take(), IsEmpty());
  Start();
  CloseParts();
  FlushAll();
  ASSERT_EQ(state_.step, Step::kSnapshot);
  closing_.StartAgain();
  EXPECT_THAT(Sent<CloseEpoch>(Take()), SizeIs(2));
  EXPECT_EQ(state_.row.counted, 0u);
  EXPECT_FALSE(IsSnapshotNeeded());
  EXPECT_THAT(Sent<FlushWorker>(CloseParts()), SizeIs(2));
  EXPECT_EQ(state_.row.counted, 90u);
}

TEST_F(EpochClosingTest, NothingIsWaitedForAnyMoreWhereTheJobGoesBack) {
  Start();
  closing_.Abandon();
  EXPECT_THAT(CloseParts(), IsEmpty());
  Start();
  CloseParts();
  closing_.Abandon();
  EXPECT_THAT(FlushAll(), IsEmpty());
}

}  // namespace
}  // namespace adamant::controller
