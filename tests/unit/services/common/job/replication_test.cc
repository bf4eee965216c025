#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"
#include "services/common/job/replication_of.h"

namespace adamant::job {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

/// A job with this parameterServers section.
ParseResult ParseWith(const std::string& servers) {
  return ParseJob(R"(apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: example}
spec:
  model: {reference: adam-mnist}
  data:
    train:
      digits: {seed: 1, examples: 1000}
    validation:
      digits: {seed: 2, examples: 100}
  distribution:
    parameterServers: )" +
                      servers + "\n",
                  "job.yaml");
}

v1::TrainingJob JobWith(const std::string& servers) {
  const ParseResult result = ParseWith(servers);
  EXPECT_NE(result.job, nullptr) << Format(result.problems.front());
  return result.job == nullptr ? v1::TrainingJob() : *result.job;
}

std::string FirstProblem(const std::string& servers) {
  const ParseResult result = ParseWith(servers);
  return result.problems.empty() ? "" : Format(result.problems.front());
}

TEST(ReplicationTest, TwoOfThreeCopiesAreNeededForAnUpdateUnlessTheManifestSaysOtherwise) {
  EXPECT_EQ(ReplicationOf(JobWith("{copies: 1}")).min_in_sync, 1U);
  EXPECT_EQ(ReplicationOf(JobWith("{copies: 2}")).min_in_sync, 1U);
  EXPECT_EQ(ReplicationOf(JobWith("{copies: 3}")).min_in_sync, 2U);
  EXPECT_EQ(ReplicationOf(JobWith("{copies: 3, minInSync: 3}")).min_in_sync, 3U);
}

TEST(ReplicationTest, TheDefaultOfMinInSyncIsPrinted) {
  EXPECT_THAT(ToYaml(JobWith("{copies: 3}")), HasSubstr("minInSync: 2"));
}

TEST(ReplicationTest, DefaultsAreThoseOfTheDesign) {
  const Replication replication = ReplicationOf(JobWith("{}"));
  EXPECT_EQ(replication.copies, 3U);
  EXPECT_EQ(replication.min_in_sync, 2U);
  EXPECT_EQ(replication.beacon, milliseconds(500));
  EXPECT_EQ(replication.lease, milliseconds(3000));
  EXPECT_EQ(replication.grace, milliseconds(4000));
  EXPECT_EQ(replication.mode, PersistenceMode::kDelayed);
  EXPECT_EQ(replication.flush_interval, milliseconds(1000));
  EXPECT_EQ(replication.flush_bytes, std::uint64_t{64} << 20);
  EXPECT_EQ(replication.retain_bytes, std::uint64_t{256} << 20);
}

TEST(ReplicationTest, EachBucketIsOnThreeServersOrOnAllOfFewer) {
  EXPECT_EQ(ReplicationOf(JobWith("{count: 1}")).copies, 1U);
  EXPECT_EQ(ReplicationOf(JobWith("{count: 2}")).copies, 2U);
  EXPECT_EQ(ReplicationOf(JobWith("{count: 2}")).min_in_sync, 1U);
  EXPECT_EQ(ReplicationOf(JobWith("{count: 16}")).copies, 3U);
  EXPECT_EQ(ReplicationOf(JobWith("{count: 16, copies: 1}")).copies, 1U);
  EXPECT_THAT(ToYaml(JobWith("{count: 2}")), HasSubstr("copies: 2"));
}

TEST(ReplicationTest, GivenValuesArriveInTheirUnits) {
  const Replication replication = ReplicationOf(
      JobWith("{copies: 2, failover: {beacon: 100ms, lease: 600ms, grace: 800ms}, persistence: "
              "{mode: WalSync, flushInterval: 2.5s, flushBytes: 1Mi, retain: 0}}"));
  EXPECT_EQ(replication.copies, 2U);
  EXPECT_EQ(replication.beacon, milliseconds(100));
  EXPECT_EQ(replication.lease, milliseconds(600));
  EXPECT_EQ(replication.grace, milliseconds(800));
  EXPECT_EQ(replication.mode, PersistenceMode::kWalSync);
  EXPECT_EQ(replication.flush_interval, milliseconds(2500));
  EXPECT_EQ(replication.flush_bytes, std::uint64_t{1} << 20);
  EXPECT_EQ(replication.retain_bytes, 0U);
}

TEST(ReplicationTest, WithoutPersistenceNothingIsFlushedOrRetained) {
  const v1::TrainingJob job = JobWith("{copies: 2, persistence: {mode: None}}");
  const Replication replication = ReplicationOf(job);
  EXPECT_EQ(replication.mode, PersistenceMode::kNone);
  EXPECT_EQ(replication.flush_interval.count(), 0);
  EXPECT_EQ(replication.flush_bytes, 0U);
  EXPECT_EQ(replication.retain_bytes, 0U);
  EXPECT_THAT(ToYaml(job), Not(HasSubstr("retain")));
}

TEST(ReplicationTest, TheLeastGraceIsElevenNinthsOfTheLease) {
  EXPECT_EQ(FirstProblem("{failover: {beacon: 300ms, lease: 900ms, grace: 1100ms}}"), "");
  EXPECT_THAT(FirstProblem("{failover: {beacon: 300ms, lease: 900ms, grace: 1099ms}}"),
              HasSubstr("(allowed: at least 1s100ms)"));
  EXPECT_THAT(FirstProblem("{failover: {beacon: 300ms, lease: 901ms, grace: 1100ms}}"),
              HasSubstr("(allowed: at least 1s102ms)"));
}

TEST(ReplicationTest, ALeaseIsHeldAgainstTheDefaultsOfWhatIsNotGiven) {
  EXPECT_THAT(FirstProblem("{failover: {lease: 1s}}"), HasSubstr("three beacons of 500ms"));
  EXPECT_THAT(FirstProblem("{failover: {lease: 10s}}"),
              HasSubstr("failover.grace: 4s is too short for a lease of 10s"));
}

TEST(ReplicationTest, WhatIsOutOfRangeIsReportedOnceAndNothingFollowsFromIt) {
  EXPECT_EQ(ParseWith("{copies: 0, minInSync: 2}").problems.size(), 1U);
  EXPECT_EQ(ParseWith("{count: 0, copies: 3}").problems.size(), 1U);
  EXPECT_EQ(ParseWith("{count: 0}").problems.size(), 1U);
  EXPECT_EQ(ParseWith("{failover: {lease: 1h}}").problems.size(), 1U);
  EXPECT_EQ(ParseWith("{failover: {grace: 1ms}}").problems.size(), 1U);
  EXPECT_EQ(ParseWith("{failover: {beacon: 1h}}").problems.size(), 1U);
}

}  // namespace
}  // namespace adamant::job
