#include "services/worker/core/sync/fetches/snapshot_fetch.h"

#include "tests/unit/services/worker/core/sync/tracker_fixture.h"

namespace adamant::worker {
namespace {

using Begun = EvaluationWeights::Begun;

class SnapshotFetchTest : public TrackerTest {
 protected:
  /// The values that a message asks for come; returns the last progress.
  FetchProgress Deliver() {
    FetchProgress last;
    for (const FetchMessage& message : PollFetches()) {
      FetchReply reply = {.request = message.request};
      for (const ShardId shard : message.shards) {
        reply.shards.push_back(
            {.shard = shard, .configuration_version = PlacementOf(shard).version});
      }
      auto progress = fetches_.OnReply(reply, now_);
      EXPECT_TRUE(progress.ok());
      last = *progress;
    }
    return last;
  }

  /// Snapshot `snapshot` of the end of `epoch` is loaded.
  void Load(DataEpoch epoch, std::uint64_t snapshot) {
    EXPECT_TRUE(fetch_.Want(epoch, snapshot));
    ASSERT_TRUE(fetch_.StartDue());
    const FetchProgress progress = Deliver();
    ASSERT_TRUE(progress.complete);
    ASSERT_TRUE(fetch_.Is(progress.fetch));
    fetch_.OnComplete();
  }

  EvaluationWeights weights_{3};
  SnapshotFetch fetch_{weights_, fetches_};
};

TEST_F(SnapshotFetchTest, ASnapshotIsFetchedOnce) {
  EXPECT_FALSE(fetch_.StartDue());
  Load(1, 7);
  EXPECT_EQ(weights_.Begin(7), Begun::kReady);
  weights_.End();
  EXPECT_TRUE(fetch_.Want(1, 7));
  EXPECT_FALSE(fetch_.StartDue());
}

TEST_F(SnapshotFetchTest, TheNextWaitsUntilNobodyReadsTheLast) {
  Load(1, 7);
  ASSERT_EQ(weights_.Begin(7), Begun::kReady);
  EXPECT_TRUE(fetch_.Want(2, 8));
  EXPECT_FALSE(fetch_.StartDue());
  weights_.End();
  EXPECT_TRUE(fetch_.StartDue());
}

TEST_F(SnapshotFetchTest, AnOlderOneIsNotWanted) {
  EXPECT_TRUE(fetch_.Want(1, 8));
  EXPECT_FALSE(fetch_.Want(1, 7));
  EXPECT_EQ(weights_.Begin(7), Begun::kMissing);
  EXPECT_EQ(weights_.Begin(8), Begun::kNotYet);
}

TEST_F(SnapshotFetchTest, TheNextEpochEndsTheEvaluationAndItsFetch) {
  EXPECT_FALSE(fetch_.OnEpochBegun(1));
  EXPECT_TRUE(fetch_.Want(1, 7));
  ASSERT_TRUE(fetch_.StartDue());
  EXPECT_FALSE(fetch_.OnEpochBegun(1));
  EXPECT_TRUE(fetch_.OnEpochBegun(2));
  EXPECT_TRUE(PollFetches().empty());
  EXPECT_EQ(weights_.Begin(7), Begun::kMissing);
  EXPECT_TRUE(fetch_.Want(1, 8)) << "from a data server that is behind";
  EXPECT_FALSE(fetch_.StartDue());
  EXPECT_EQ(weights_.Begin(8), Begun::kMissing);
}

}  // namespace
}  // namespace adamant::worker
