#include "operator/core/training/snapshot_coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/job/job_parts.h"

namespace adamant::controller {
namespace {

constexpr std::uint64_t kSnapshot = 3;

class SnapshotCoordinatorTest : public JobParts {
 protected:
  SnapshotCoordinatorTest() {
    BeginTraining();
    snapshots_.Take(kSnapshot);
  }

  /// The server stores the buckets that it leads; returns whether that completes the snapshot.
  bool Store(std::uint32_t server) {
    SnapshotTaken taken{.snapshot = kSnapshot, .ok = true};
    for (BucketId bucket = 0; bucket < state_.buckets.size(); ++bucket) {
      if (state_.buckets[bucket].primary.slot == server) {
        taken.buckets.push_back(
            {.bucket = bucket, .generation = state_.buckets[bucket].generation});
      }
    }
    return snapshots_.OnTaken(server, taken, now_).value();
  }

  void Lead(BucketId bucket, ServerId server) {
    state_.buckets[bucket].primary = server;
    ++state_.buckets[bucket].version;
    snapshots_.Follow();
  }

  SnapshotCoordinator snapshots_{
      settings_, state_, outbox_, processes_, placement_.configurations()};
};

TEST_F(SnapshotCoordinatorTest, IsCompleteWithTheLastAnswer) {
  EXPECT_FALSE(Store(0));
  EXPECT_TRUE(Store(1));
  EXPECT_FALSE(Store(1)) << "no news";
  EXPECT_EQ(state_.checkpoint.snapshot, kSnapshot);
  EXPECT_FALSE(snapshots_.OnTimer(now_));
}

// It has stored the bucket, lost it to another and has it again: no answer is left to come.
TEST_F(SnapshotCoordinatorTest, IsCompleteWhenAPrimaryThatStoredItsBucketLeadsItAgain) {
  const ServerId first = state_.buckets[0].primary;
  const BucketId others = state_.buckets[1].primary.slot != first.slot ? 1 : 2;
  const ServerId second = state_.buckets[others].primary;
  ASSERT_NE(first.slot, second.slot);
  EXPECT_FALSE(Store(first.slot));
  Lead(0, second);
  SnapshotTaken before{.snapshot = kSnapshot, .ok = true};  // without the bucket
  for (BucketId bucket = 1; bucket < state_.buckets.size(); ++bucket) {
    if (state_.buckets[bucket].primary == second) {
      before.buckets.push_back({.bucket = bucket, .generation = state_.buckets[bucket].generation});
    }
  }
  EXPECT_FALSE(snapshots_.OnTaken(second.slot, before, now_).value());
  EXPECT_FALSE(snapshots_.OnTimer(now_));
  Lead(0, first);
  ASSERT_TRUE(snapshots_.NextTimer().has_value());
  EXPECT_LE(*snapshots_.NextTimer(), now_);
  EXPECT_TRUE(snapshots_.OnTimer(now_));
  EXPECT_EQ(state_.checkpoint.snapshot, kSnapshot);
  EXPECT_FALSE(snapshots_.NextTimer().has_value());
  EXPECT_FALSE(snapshots_.OnTimer(now_)) << "no news";
}

}  // namespace
}  // namespace adamant::controller
