#include "services/parameter_server/core/buckets/bucket_table.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "tests/fakes/fake_clock.h"
#include "tests/unit/services/parameter_server/core/counting_driver.h"

namespace adamant::parameter_server {
namespace {

using Session = BucketTable::Session;

class SilentHost final : public ReplicaHost {
 public:
  void Send(const ServerId& /*to*/, PeerMessage /*message*/) override {}
  void Propose(const Proposal& /*proposal*/) override {}
  void Persist(BucketId /*id*/, const EntryPtr& /*entry*/, std::uint64_t /*ticket*/) override {}
  void Commit(BucketId /*id*/, const EntryPtr& /*entry*/) override {}
  void Load(BucketId /*id*/, bool /*create*/) override {}
  void Serving(BucketId /*id*/) override {}
  void Demoted(BucketId /*id*/) override {}
  void StartCopy(BucketId /*id*/,
                 const ServerId& /*learner*/,
                 std::uint64_t /*copy*/,
                 Lsn /*base*/) override {}
  void StopCopy(BucketId /*id*/) override {}
  void Learn(BucketId /*id*/, const CopyBegin& /*begin*/) override {}
  void Clear(BucketId /*id*/) override {}
};

class BucketTableTest : public ::testing::Test {
 protected:
  /// A bucket's content as it is when it has been created.
  Bucket::Content Created(BucketId bucket) {
    Bucket::Content content{.generation = 1};
    for (const ShardId shard : catalog_.ShardsOf(bucket)) {
      content.shards.push_back(catalog_.Create(shard, 1));
    }
    content.sequences.resize(content.shards.size());
    return content;
  }

  FakeClock clock_;
  DirtyShards dirty_{{}, clock_, [] {}};
  ShardCatalog catalog_{
      {.parameters = {{.name = "w", .layer = "l", .shape = {4}}}, .buckets = 2, .optimisers = {{}}},
      dirty_};
  SilentHost host_;
  CountingDriver driver_;
  BucketTable table_{catalog_, {}, host_, driver_};
};

TEST_F(BucketTableTest, ShardsComeAndGoWithTheirBucket) {
  const BucketId id = catalog_.BucketOf(0);
  {
    Session session(table_);
    session.Fill(id, Created(id));
  }
  EXPECT_NE(table_.shards().Get(0), nullptr);
  const std::uint64_t life = [&] { return BucketTable::View(table_).bucket(id).life(); }();
  EXPECT_TRUE(table_.Lives(id, life));
  {
    Session session(table_);
    session.Clear(id);
  }
  EXPECT_EQ(table_.shards().Get(0), nullptr);
  EXPECT_FALSE(table_.Lives(id, life));
}

TEST_F(BucketTableTest, AnswersAreGivenWithoutTheLock) {
  std::vector<ShardAck> settled;
  const auto push = std::make_shared<PushState>(1, [&](std::vector<ShardAck> acks) {
    const BucketTable::View without_waiting(table_);
    settled = std::move(acks);
  });
  bool answered = false;
  {
    Session session(table_);
    session.Settle({.push = push, .ack = {.configuration_version = 5}}, PushOutcome::kNotReady);
    session.Answer(
        [&](const RecordAnswer&) {
          const BucketTable::View without_waiting(table_);
          answered = true;
        },
        {});
    EXPECT_TRUE(settled.empty());
    EXPECT_FALSE(answered);
  }
  ASSERT_EQ(settled.size(), 1u);
  EXPECT_EQ(settled[0].outcome, PushOutcome::kNotReady);
  EXPECT_EQ(settled[0].configuration_version, 5u);
  EXPECT_TRUE(answered);
}

TEST_F(BucketTableTest, DeferredWorkIsToldUnlessItIsDoneHere) {
  {
    Session session(table_, Session::Applying::kHere);
    session.SendPart({.bucket = 1, .copy = 2, .index = 3});
  }
  EXPECT_EQ(driver_.applies, 0);
  EXPECT_EQ(table_.TakeDeferred().parts.size(), 1u);
  EXPECT_TRUE(table_.TakeDeferred().empty());
  {
    Session session(table_);
    session.SendPart({.bucket = 1, .copy = 2, .index = 3});
  }
  EXPECT_EQ(driver_.applies, 1);
}

TEST_F(BucketTableTest, WhatIsNotServedCannotBeRead) {
  EXPECT_FALSE(table_.ReadableContent(0, clock_.Now()).has_value());
}

}  // namespace
}  // namespace adamant::parameter_server
