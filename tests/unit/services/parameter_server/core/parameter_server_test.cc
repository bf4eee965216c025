#include "services/parameter_server/core/parameter_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/services/parameter_server/core/server_fixture.h"

namespace adamant::parameter_server {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class ParameterServerTest : public ServerFixture {
 protected:
  static ServerOptions Random() {
    ServerOptions options = Flat(4, OnWorker());
    options.parameters[0].initialisation = Initialisation::kHe;
    return options;
  }

  ShardUpdate Ones(std::uint64_t sequence) {
    return {.sequence = sequence, .kind = UpdateKind::kWeightChange, .values = ones_};
  }

  const std::vector<float> ones_{1, 1, 1, 1};
};

TEST_F(ParameterServerTest, CreatedShardsHoldTheValuesOfTheSeed) {
  Create(Random());
  std::vector<float> expected(4);
  InitialiseShard(5, server_->layout().parameters()[0], server_->layout().shards()[0], expected);
  EXPECT_EQ(Values(0), expected);
  EXPECT_NE(expected, std::vector<float>(4));
}

TEST_F(ParameterServerTest, ACreatedBucketIsNotUsedBeforeTheMapSaysSo) {
  Start(Random(), false);
  ASSERT_EQ(server_->Reports().size(), 2u);
  EXPECT_FALSE(server_->Reports()[0].lost);
  EXPECT_EQ(server_->Reports()[0].epoch, 1u);
  EXPECT_EQ(PushOne(Ones(1)).outcome, PushOutcome::kNotReady);
  EXPECT_EQ(server_->AccessOfRecord("k"), BucketTable::Access::kNotReady);
  EXPECT_EQ(server_->Fetch(nullptr, std::vector<ShardId>{0}, 0)->at(0).outcome,
            FetchOutcome::kNotReady);
}

TEST_F(ParameterServerTest, ABucketOfAnotherServerIsRefused) {
  Start(Random(), false);
  server_->SetMap(std::vector<BucketRecord>(2, {.epoch = 2, .primary = 1, .created = true}));
  EXPECT_TRUE(server_->Reports().empty());
  EXPECT_EQ(server_->Fetch(nullptr, std::vector<ShardId>{0}, 0)->at(0).outcome,
            FetchOutcome::kNotPrimary);
  EXPECT_EQ(server_->AccessOfRecord("k"), BucketTable::Access::kNotPrimary);
}

TEST_F(ParameterServerTest, AnOldMapIsIgnored) {
  Create(Random());
  server_->SetMap(std::vector<BucketRecord>(2, {.epoch = 1, .primary = 1, .created = false}));
  EXPECT_EQ(PushOne(Ones(1)).outcome, PushOutcome::kApplied);
}

TEST_F(ParameterServerTest, AShardThatIsMissingIsLostAndNeverInitialisedAgain) {
  Start(Random(), true);
  const BucketId bucket = server_->layout().shards()[0].bucket;
  for (const BucketReport& report : server_->Reports()) {
    EXPECT_EQ(report.lost, report.bucket == bucket);
    EXPECT_EQ(report.detail, report.lost ? "stored shard 0 is missing" : "");
  }
  EXPECT_EQ(PushOne(Ones(1)).outcome, PushOutcome::kNotReady);
  ASSERT_TRUE(server_->Prepare().ok());
  EXPECT_TRUE(server_->Reports()[bucket].lost);
  EXPECT_EQ(store_.Get("shard/00000000").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ParameterServerTest, ACorruptShardIsLost) {
  Create(Random());
  std::string stored = *store_.Get("shard/00000000");
  stored[60] = static_cast<char>(stored[60] ^ 1);
  ASSERT_TRUE(store_.Write({{"shard/00000000", stored}}).ok());
  Start(Random(), true);
  const BucketId bucket = server_->layout().shards()[0].bucket;
  EXPECT_THAT(server_->Reports()[bucket].detail, HasSubstr("checksum"));
}

TEST_F(ParameterServerTest, ValuesStateAndSequencesComeBackFromTheStore) {
  Create(Flat(4, {.kind = OptimiserKind::kMomentum, .rate = 1, .momentum = 0.5}));
  ShardUpdate update{.sequence = 1, .kind = UpdateKind::kGradient, .values = ones_};
  PushOne(update);
  ASSERT_TRUE(server_->flusher().Flush().ok());
  const std::vector<float> before = Values(0);
  store_.Crash();
  Start(Flat(4, {.kind = OptimiserKind::kMomentum, .rate = 1, .momentum = 0.5}), true);
  EXPECT_EQ(Values(0), before);
  EXPECT_EQ(PushOne(update).outcome, PushOutcome::kDuplicate);
  update.sequence = 2;
  EXPECT_EQ(PushOne(update).version, 2u);
  EXPECT_THAT(Values(0), Each(-1 - 1.5f));  // momentum 0.5 x 1 + 1
}

TEST_F(ParameterServerTest, ASnapshotKeepsItsValuesWhilePushesGoOn) {
  Create(Flat(4, OnWorker()));
  PushOne(Ones(1));
  ASSERT_TRUE(server_->TakeSnapshot(1, 0, {}).ok());
  PushOne(Ones(2));
  EXPECT_THAT(Values(0), Each(2));
  EXPECT_THAT(Values(0, 1), Each(1));
  ASSERT_TRUE(server_->TakeSnapshot(1, 0, {}).ok()) << "a repeated command";
  EXPECT_THAT(Values(0, 1), Each(1));
  store_.Crash();
  Start(Flat(4, OnWorker()), true);
  EXPECT_THAT(Values(0, 1), Each(1));
}

TEST_F(ParameterServerTest, SnapshotsThatNeedNotBeKeptAreRemoved) {
  Create(Flat(4, OnWorker()));
  for (std::uint64_t snapshot = 1; snapshot <= 4; ++snapshot) {
    PushOne(Ones(snapshot));
    ASSERT_TRUE(server_->TakeSnapshot(snapshot, snapshot - 1, std::vector<std::uint64_t>{1}).ok());
  }
  const auto outcome = [&](std::uint64_t snapshot) {
    return server_->Fetch(nullptr, std::vector<ShardId>{0}, snapshot)->at(0).outcome;
  };
  EXPECT_EQ(outcome(1), FetchOutcome::kFound);
  EXPECT_EQ(outcome(2), FetchOutcome::kNoSuchSnapshot);
  EXPECT_EQ(outcome(3), FetchOutcome::kFound);
  EXPECT_EQ(outcome(4), FetchOutcome::kFound);
  EXPECT_EQ(outcome(5), FetchOutcome::kNoSuchSnapshot);
}

TEST_F(ParameterServerTest, AnIncompleteSnapshotIsNone) {
  Create(Flat(4, OnWorker()));
  PushOne(Ones(1));
  store_.FailNextSync();
  EXPECT_FALSE(server_->TakeSnapshot(1, 0, {}).ok());
  EXPECT_EQ(server_->Fetch(nullptr, std::vector<ShardId>{0}, 1)->at(0).outcome,
            FetchOutcome::kNoSuchSnapshot);
}

TEST_F(ParameterServerTest, ASnapshotWaitsForAllBuckets) {
  Start(Flat(4, OnWorker()), false);
  EXPECT_EQ(server_->TakeSnapshot(1, 0, {}).code(), absl::StatusCode::kUnavailable);
}

TEST_F(ParameterServerTest, AFetchOfAnUnknownShardIsRefused) {
  Create(Flat(4, OnWorker()));
  EXPECT_EQ(server_->Fetch(nullptr, std::vector<ShardId>{1}, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace adamant::parameter_server
