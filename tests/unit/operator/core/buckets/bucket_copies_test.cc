#include "operator/core/buckets/bucket_copies.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/operator/core/processes/joined_servers.h"

namespace adamant::controller {
namespace {

using std::chrono::seconds;

// Bucket 0 begins on server 0, bucket 1 on server 1.
class BucketCopiesTest : public JoinedServers {
 protected:
  BucketCopiesTest() { configurations_.Assign({ServerIdAt(0), ServerIdAt(1)}); }

  void Serve() {
    for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
      const Configuration& configuration = configurations_.At(bucket);
      configurations_.OnServing(configuration.primary, bucket, configuration.version);
    }
    copies_.OnSettled(now_);
  }

  // Each bucket has so many replicas: its first server and the next ones.
  void SetCopies(std::uint32_t count) {
    for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
      std::vector<ServerId>& replicas = state_.buckets[bucket].replicas;
      replicas.clear();
      for (std::uint32_t i = 0; i < count; ++i) {
        replicas.push_back(ServerIdAt((bucket + i) % 3));
      }
    }
  }

  Configurations configurations_{state_, settings_.min_in_sync};
  ParameterServers servers_{settings_, processes_};
  BucketCopies copies_{settings_, configurations_, servers_};
};

TEST_F(BucketCopiesTest, IsCompleteWithAllCopiesOrAfterTheTimeForThem) {
  SetCopies(2);
  EXPECT_FALSE(copies_.IsComplete(now_ + BucketCopies::kCopyTime));
  Serve();
  EXPECT_FALSE(copies_.IsComplete(now_));
  EXPECT_EQ(copies_.NextTimer(now_), now_ + BucketCopies::kCopyTime);
  EXPECT_TRUE(copies_.IsComplete(now_ + BucketCopies::kCopyTime));
  EXPECT_EQ(copies_.NextTimer(now_ + BucketCopies::kCopyTime), std::nullopt);
  SetCopies(3);
  EXPECT_TRUE(copies_.IsComplete(now_));
}

TEST_F(BucketCopiesTest, IsNeverCompleteBelowMinInSync) {
  Serve();
  EXPECT_FALSE(copies_.IsComplete(now_ + BucketCopies::kCopyTime));
}

TEST_F(BucketCopiesTest, TheTimeForCopiesCountsFromWhenAllWereServedFirst) {
  SetCopies(2);
  Serve();
  copies_.OnSettled(now_ + seconds(5));
  EXPECT_EQ(copies_.NextTimer(now_), now_ + BucketCopies::kCopyTime);
  copies_.Forget();
  EXPECT_FALSE(copies_.all_served());
  EXPECT_EQ(copies_.NextTimer(now_), std::nullopt);
  copies_.OnSettled(now_ + seconds(5));
  EXPECT_EQ(copies_.NextTimer(now_), now_ + seconds(5) + BucketCopies::kCopyTime);
}

TEST_F(BucketCopiesTest, CopiesOfServersThatAreLostDoNotLive) {
  SetCopies(3);
  Serve();
  EXPECT_TRUE(copies_.HasAllCopies());
  EXPECT_EQ(copies_.LiveCopiesOf(0), 3U);
  MarkLost(2);
  EXPECT_FALSE(copies_.HasAllCopies());
  EXPECT_EQ(copies_.LiveCopiesOf(0), 2U);
}

TEST_F(BucketCopiesTest, ADiskIsNeededWhereTooFewOtherReplicasRun) {
  SetCopies(2);
  EXPECT_TRUE(copies_.NeedsDiskOf(0)) << "the other replica is fewer than min_in_sync";
  SetCopies(3);
  EXPECT_FALSE(copies_.NeedsDiskOf(0));
  MarkLost(2);
  EXPECT_TRUE(copies_.NeedsDiskOf(0));
}

}  // namespace
}  // namespace adamant::controller
