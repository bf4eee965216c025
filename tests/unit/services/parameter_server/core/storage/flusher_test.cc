#include "services/parameter_server/core/storage/flusher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/services/parameter_server/core/serving/server_fixture.h"

namespace adamant::parameter_server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Each;
using ::testing::StartsWith;

class FlusherTest : public ServerFixture {
 protected:
  void SetUp() override { Create(Flat(4, OnWorker())); }

  void Push(Sequence sequence) {
    const ShardAck ack =
        PushOne({.sequence = sequence, .kind = UpdateKind::kWeightChange, .values = ones_});
    ASSERT_EQ(ack.outcome, PushOutcome::kApplied);
  }

  /// The values that a process started after a crash finds.
  std::vector<float> AfterCrash() {
    Restart(Flat(4, OnWorker()));
    return Values(0);
  }

  const Flusher& flusher() { return server().flusher(); }
  absl::Status Flush() { return rig_->Flush(0); }

  const std::vector<float> ones_{1, 1, 1, 1};
};

TEST_F(FlusherTest, ACrashLosesOnlyWhatWasNotFlushed) {
  Push(1);
  Push(2);
  ASSERT_TRUE(Flush().ok());
  Push(3);
  EXPECT_THAT(AfterCrash(), Each(2));
}

TEST_F(FlusherTest, UpdatesFoldIntoOneWrite) {
  for (Sequence sequence = 1; sequence <= 5; ++sequence) {
    Push(sequence);
  }
  ASSERT_TRUE(Flush().ok());
  EXPECT_EQ(flusher().totals().flushes, 1u);
  EXPECT_EQ(flusher().totals().folded, 4u);
  EXPECT_GT(flusher().totals().bytes, 16u);
}

TEST_F(FlusherTest, IsDueWithinTheInterval) {
  EXPECT_EQ(flusher().DueAt(), Clock::TimePoint::max());
  const auto start = rig_->clock.Now();
  Push(1);
  EXPECT_EQ(flusher().DueAt(), start + milliseconds(500));
  ASSERT_TRUE(Flush().ok());
  EXPECT_EQ(flusher().DueAt(), Clock::TimePoint::max());
}

TEST_F(FlusherTest, AFullDiskRaisesTheAlarmAndNothingIsLost) {
  Push(1);
  rig_->clock.Advance(milliseconds(500));
  rig_->store(0).SetFull(true);
  EXPECT_TRUE(Flush().ok());
  EXPECT_THAT(flusher().alarm(), StartsWith("disk full: "));
  EXPECT_EQ(flusher().DueAt(), rig_->clock.Now() + seconds(1));
  EXPECT_EQ(server().flusher().dirty().OldestAge(), milliseconds(500));

  Push(2);  // serving goes on
  EXPECT_THAT(Values(0), Each(2));

  rig_->clock.Advance(seconds(1));
  rig_->store(0).SetFull(false);
  EXPECT_TRUE(Flush().ok());
  EXPECT_EQ(flusher().alarm(), "");
  EXPECT_EQ(flusher().totals().folded, 1u);
  EXPECT_THAT(AfterCrash(), Each(2));
}

TEST_F(FlusherTest, WhatWasAskedForIsTriedAgainAfterASecondWhereTheDiskWasFull) {
  Push(1);
  server().RequestFlush(kWriter, {});
  rig_->store(0).SetFull(true);
  for (int tries = 0; tries < 3; ++tries) {
    EXPECT_LE(flusher().DueAt(), rig_->clock.Now());
    EXPECT_TRUE(Flush().ok());
    EXPECT_EQ(flusher().DueAt(), rig_->clock.Now() + seconds(1)) << "not at half the interval";
    rig_->clock.Advance(seconds(1));
  }
}

TEST_F(FlusherTest, AFailedSyncIsFatal) {
  Push(1);
  rig_->store(0).FailNextSync();
  EXPECT_EQ(Flush().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(AfterCrash(), Each(0));
}

}  // namespace
}  // namespace adamant::parameter_server
