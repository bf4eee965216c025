#include "services/common/codec/buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "proto/adamant/v1/control.pb.h"

namespace adamant::codec {
namespace {

template <class Message, class Value>
Value ThereAndBack(const Value& value) {
  Message message;
  Encode(value, message);
  return Decode(message);
}

TEST(BucketsCodecTest, ARecordComesBackAsItWas) {
  const protocol::Configuration bucket{.version = 5,
                                       .generation = 2,
                                       .primary = {.slot = 1, .incarnation = 7},
                                       .replicas = {{.slot = 1, .incarnation = 7}, {.slot = 2}},
                                       .created = true,
                                       .learner = protocol::ServerId{.slot = 4, .incarnation = 4},
                                       .departing = protocol::ServerId{.slot = 2},
                                       .successor = protocol::ServerId{.slot = 1, .incarnation = 7},
                                       .restored_snapshot = 9};
  EXPECT_EQ(ThereAndBack<v1::Configuration>(bucket), bucket);
  EXPECT_EQ(ThereAndBack<v1::Configuration>(protocol::Configuration{}), protocol::Configuration{});
}

TEST(BucketsCodecTest, AProposalComesBackAsItWas) {
  for (const auto kind : {protocol::Proposal::Kind::kPromote,
                          protocol::Proposal::Kind::kDrop,
                          protocol::Proposal::Kind::kAdd}) {
    const protocol::Proposal proposal{.bucket = 3,
                                      .configuration_version = 4,
                                      .kind = kind,
                                      .proposer = {.slot = 1, .incarnation = 2},
                                      .subject = {.slot = 5, .incarnation = 6},
                                      .last_lsn = 7,
                                      .released = true};
    EXPECT_EQ(ThereAndBack<v1::Proposal>(proposal), proposal);
  }
}

TEST(BucketsCodecTest, WhatADiskHoldsComesBackAsItWas) {
  const protocol::StoredBuckets stored =
      ThereAndBack<v1::StoredBuckets>(protocol::StoredBuckets{.previous_incarnation = 3,
                                                              .buckets = {{.bucket = 1,
                                                                           .generation = 2,
                                                                           .updates = 4,
                                                                           .complete = true,
                                                                           .detail = "a shard",
                                                                           .log_version = 5,
                                                                           .log_lsn = 6}}});
  EXPECT_EQ(stored.previous_incarnation, 3u);
  ASSERT_EQ(stored.buckets.size(), 1u);
  EXPECT_EQ(stored.buckets[0].bucket, 1u);
  EXPECT_EQ(stored.buckets[0].generation, 2u);
  EXPECT_EQ(stored.buckets[0].updates, 4u);
  EXPECT_TRUE(stored.buckets[0].complete);
  EXPECT_EQ(stored.buckets[0].detail, "a shard");
  EXPECT_EQ(stored.buckets[0].log_version, 5u);
  EXPECT_EQ(stored.buckets[0].log_lsn, 6u);
}

TEST(BucketsCodecTest, ProgressComesBackAsItWas) {
  const auto progress = ThereAndBack<v1::ParameterServerProgress>(
      protocol::ParameterServerProgress{.updates_applied = 1,
                                        .dirty_bytes = 2,
                                        .oldest_unflushed_seconds = 0.5,
                                        .flushes = 3,
                                        .alarm = "disk full",
                                        .damages = {"a: b", "c: d"},
                                        .buckets = {{.bucket = 4,
                                                     .configuration_version = 5,
                                                     .committed = 6,
                                                     .lag = 7,
                                                     .updates = 8,
                                                     .serving = true}}});
  EXPECT_EQ(progress.updates_applied, 1u);
  EXPECT_EQ(progress.dirty_bytes, 2u);
  EXPECT_EQ(progress.oldest_unflushed_seconds, 0.5);
  EXPECT_EQ(progress.flushes, 3u);
  EXPECT_EQ(progress.alarm, "disk full");
  EXPECT_THAT(progress.damages, testing::ElementsAre("a: b", "c: d"));
  ASSERT_EQ(progress.buckets.size(), 1u);
  EXPECT_EQ(progress.buckets[0].bucket, 4u);
  EXPECT_EQ(progress.buckets[0].configuration_version, 5u);
  EXPECT_EQ(progress.buckets[0].committed, 6u);
  EXPECT_EQ(progress.buckets[0].lag, 7u);
  EXPECT_EQ(progress.buckets[0].updates, 8u);
  EXPECT_TRUE(progress.buckets[0].serving);
}

TEST(BucketsCodecTest, AnAgeThatIsNotFiniteIsReadAsNone) {
  const protocol::ParameterServerProgress progress{.oldest_unflushed_seconds =
                                                       std::numeric_limits<double>::infinity()};
  EXPECT_EQ(ThereAndBack<v1::ParameterServerProgress>(progress).oldest_unflushed_seconds, 0);
}

TEST(BucketsCodecTest, AStateComesBackAsItWasWithTimesOnlyAfterAPromotion) {
  const auto ready = ThereAndBack<v1::BucketsReady>(protocol::BucketsReady{
      .buckets = {{.bucket = 1, .configuration_version = 2, .updates = 3},
                  {.bucket = 4,
                   .configuration_version = 5,
                   .lost = true,
                   .detail = "missing",
                   .failover = protocol::FailoverTimes{
                       .detect_seconds = 1.5, .replace_seconds = 2, .reconcile_seconds = 0.25}}}});
  ASSERT_EQ(ready.buckets.size(), 2u);
  EXPECT_FALSE(ready.buckets[0].failover.has_value());
  EXPECT_EQ(ready.buckets[0].updates, 3u);
  EXPECT_TRUE(ready.buckets[1].lost);
  EXPECT_EQ(ready.buckets[1].detail, "missing");
  ASSERT_TRUE(ready.buckets[1].failover.has_value());
  EXPECT_EQ(ready.buckets[1].failover->detect_seconds, 1.5);
  EXPECT_EQ(ready.buckets[1].failover->replace_seconds, 2);
  EXPECT_EQ(ready.buckets[1].failover->reconcile_seconds, 0.25);
}

TEST(BucketsCodecTest, ASnapshotComesBackAsItWas) {
  const auto taken = ThereAndBack<v1::SnapshotTaken>(protocol::SnapshotTaken{
      .snapshot = 1,
      .ok = true,
      .error = "none",
      .buckets =
          {{.bucket = 2, .configuration_version = 3, .generation = 4, .updates = 5, .checksum = 6}},
      .disk_full = true});
  EXPECT_EQ(taken.snapshot, 1u);
  EXPECT_TRUE(taken.ok);
  EXPECT_EQ(taken.error, "none");
  EXPECT_TRUE(taken.disk_full);
  ASSERT_EQ(taken.buckets.size(), 1u);
  EXPECT_EQ(taken.buckets[0].bucket, 2u);
  EXPECT_EQ(taken.buckets[0].configuration_version, 3u);
  EXPECT_EQ(taken.buckets[0].generation, 4u);
  EXPECT_EQ(taken.buckets[0].updates, 5u);
  EXPECT_EQ(taken.buckets[0].checksum, 6u);
}

TEST(BucketsCodecTest, ACommandToTakeASnapshotComesBackAsItWas) {
  const auto take = ThereAndBack<v1::TakeSnapshot>(protocol::TakeSnapshot{
      .snapshot = 1, .keep_from = 2, .keep = {3}, .writers_from = {4, 5}, .generations = {6}});
  EXPECT_EQ(take.snapshot, 1u);
  EXPECT_EQ(take.keep_from, 2u);
  EXPECT_THAT(take.keep, testing::ElementsAre(3));
  EXPECT_THAT(take.writers_from, testing::ElementsAre(4, 5));
  EXPECT_THAT(take.generations, testing::ElementsAre(6));
}

}  // namespace
}  // namespace adamant::codec
