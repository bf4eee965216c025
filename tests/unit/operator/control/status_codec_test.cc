#include "operator/control/status_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "operator/core/state/state.h"
#include "proto/adamant/v1/control.pb.h"

namespace adamant::control {
namespace {

TEST(StatusCodecTest, AReportComesBackAsItWas) {
  controller::JobReport report;
  report.name = "n";
  report.phase = controller::Phase::kEvaluating;
  report.epoch = 3;
  report.accuracy = 0.5;
  report.members.push_back({.id = {controller::Role::kDataServer, 0},
                            .incarnation = 4,
                            .state = "Running",
                            .metrics_address = "m",
                            .buckets = 0,
                            .address = "a:1",
                            .alarm = "disk full",
                            .silent_seconds = 7.5});
  const controller::JobReport back = Decode(Encode(report));
  EXPECT_EQ(back.name, "n");
  EXPECT_EQ(back.phase, controller::Phase::kEvaluating);
  EXPECT_EQ(back.epoch, 3u);
  EXPECT_EQ(back.accuracy, 0.5);
  ASSERT_EQ(back.members.size(), 1u);
  EXPECT_EQ(back.members[0].incarnation, 4u);
  EXPECT_EQ(back.members[0].address, "a:1");
  EXPECT_EQ(back.members[0].alarm, "disk full");
  EXPECT_EQ(back.members[0].silent_seconds, 7.5);
}

TEST(StatusCodecTest, AReportKeepsWhatItSaysOfAttempts) {
  controller::JobReport report;
  report.attempt = 3;
  report.rate_factor = 0.25;
  report.divergence = "all 60 units of layer relu1 are dead";
  report.undone_updates = 1234;
  report.undone_examples = 56789;
  report.batches_of_others = 2.5;
  const controller::JobReport back = Decode(Encode(report));
  EXPECT_EQ(back.attempt, 3u);
  EXPECT_EQ(back.rate_factor, 0.25);
  EXPECT_EQ(back.divergence, report.divergence);
  EXPECT_EQ(back.undone_updates, 1234u);
  EXPECT_EQ(back.undone_examples, 56789u);
  EXPECT_EQ(back.batches_of_others, 2.5);
}

TEST(StatusCodecTest, AStatusThatSaysNothingOfAttemptsIsOfTheFirst) {
  const controller::JobReport report = Decode(v1::JobStatus());
  EXPECT_EQ(report.attempt, 1u);
  EXPECT_EQ(report.rate_factor, 1);
}

TEST(StatusCodecTest, StatusOfBucketsComesBackAsItWas) {
  controller::JobReport report;
  controller::Configuration configuration{
      .version = 4, .generation = 2, .primary = {1, 3}, .replicas = {{1, 3}, {0, 1}}};
  configuration.created = true;
  configuration.successor = controller::ServerId{0, 1};
  configuration.restored_snapshot = 6;
  report.buckets.push_back({.state = "Degraded",
                            .configuration = configuration,
                            .committed = 10,
                            .lag = 2,
                            .rolled_back = 5});
  report.last_failover = controller::FailoverReport{.bucket = 0,
                                                    .configuration_version = 4,
                                                    .times = {.detect_seconds = 0.5},
                                                    .catch_up_seconds = 1.5,
                                                    .failovers = 3,
                                                    .restores = 1};
  report.checkpoint = 12;
  report.checkpoint_held_seconds = 0.25;
  report.updates_lost = 9;
  report.updates_awaited = 10;
  const controller::JobReport decoded = Decode(Encode(report));
  ASSERT_EQ(decoded.buckets.size(), 1u);
  EXPECT_EQ(decoded.buckets[0].configuration, configuration);
  EXPECT_EQ(decoded.buckets[0].state, "Degraded");
  EXPECT_EQ(decoded.buckets[0].rolled_back, 5u);
  ASSERT_TRUE(decoded.last_failover.has_value());
  EXPECT_DOUBLE_EQ(decoded.last_failover->times.detect_seconds, 0.5);
  EXPECT_EQ(decoded.last_failover->failovers, 3u);
  EXPECT_EQ(decoded.checkpoint, 12u);
  EXPECT_DOUBLE_EQ(decoded.checkpoint_held_seconds, 0.25);
  EXPECT_EQ(decoded.updates_lost, 9u);
  EXPECT_EQ(decoded.updates_awaited, 10u);
}

TEST(StatusCodecTest, OfManyBucketsThoseInTroubleAndASummaryAreTold) {
  controller::JobReport report;
  for (BucketId bucket = 0; bucket < 65'536; ++bucket) {
    report.buckets.push_back(
        {.bucket = bucket,
         .state = bucket == 60'000 ? "Blocked" : "Ready",
         .configuration = {.version = bucket.value(), .replicas = {{0, 1}, {1, 1}, {2, 1}}},
         .committed = 1'000'000'000'000,
         .rolled_back = bucket < 3 ? 2u : 0u});
    report.bucket_summary.Add(report.buckets.back());
  }
  const v1::JobStatus encoded = Encode(report);
  EXPECT_LT(encoded.ByteSizeLong(), 1u << 20);
  const controller::JobReport decoded = Decode(encoded);
  ASSERT_EQ(decoded.buckets.size(), static_cast<std::size_t>(kMostBuckets));
  EXPECT_EQ(decoded.buckets[0].bucket, 60'000u);
  EXPECT_EQ(decoded.buckets[1].bucket, 0u);
  EXPECT_EQ(decoded.bucket_summary.states.at("Ready"), 65'535u);
  EXPECT_EQ(decoded.bucket_summary.states.at("Blocked"), 1u);
  EXPECT_EQ(decoded.bucket_summary.largest_version, 65'535u);
  EXPECT_EQ(decoded.bucket_summary.rolled_back, 6u);
  EXPECT_EQ(decoded.bucket_summary.rolled_back_buckets, 3u);
}

}  // namespace
}  // namespace adamant::control
