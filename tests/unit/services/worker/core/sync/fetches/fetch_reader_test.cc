#include "services/worker/core/sync/fetches/fetch_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace adamant::worker {
namespace {

using testing::ElementsAre;

class ShardReaderTest : public testing::Test {
 protected:
  static Parameter Vector(const char* name) { return {.name = name, .layer = name, .shape = {1}}; }

  /// Reads 10, 11, … as the values of the shards found.
  absl::Status Read(const FetchReply& reply, const std::vector<std::size_t>& fresh) {
    const auto read = [this](std::span<float> values) {
      for (float& value : values) {
        value = next_++;
      }
      return next_ <= last_ ? absl::OkStatus() : absl::DataLossError("the payload ends");
    };
    return reader_.Read(reply, fresh, read, values_, [this](const FetchedShard& fetched) {
      told_.push_back(fetched.shard);
    });
  }

  const ShardLayout layout_{{Vector("a"), Vector("b"), Vector("c")}, 16};
  FetchReader reader_{layout_};
  std::vector<float> values_ = {0, 0, 0};
  std::vector<ShardId> told_;
  float next_ = 10;
  float last_ = 100;
};

TEST_F(ShardReaderTest, ValuesGoWhereTheirShardLies) {
  const FetchReply reply = {.shards = {{.shard = 2}, {.shard = 0}}};
  ASSERT_TRUE(Read(reply, {0, 1}).ok());
  EXPECT_THAT(values_, ElementsAre(11, 0, 10));
  EXPECT_THAT(told_, ElementsAre(2, 0));
}

TEST_F(ShardReaderTest, WhatNobodyWaitsForIsReadPast) {
  const FetchReply reply = {
      .shards = {{.shard = 0}, {.shard = 1, .outcome = FetchOutcome::kNotReady}, {.shard = 2}}};
  ASSERT_TRUE(Read(reply, {2}).ok());
  EXPECT_THAT(values_, ElementsAre(0, 0, 11));
  EXPECT_THAT(told_, ElementsAre(2));
}

TEST_F(ShardReaderTest, AnErrorOfThePayloadIsReturned) {
  last_ = 10;
  EXPECT_EQ(Read({.shards = {{.shard = 0}}}, {0}).code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(told_.empty());
}

}  // namespace
}  // namespace adamant::worker
