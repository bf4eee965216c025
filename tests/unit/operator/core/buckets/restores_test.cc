#include "operator/core/buckets/restores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace adamant::controller {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kBucket = 5;

StoredBuckets Disk(std::uint64_t previous, StoredBucket bucket) {
  bucket.bucket = kBucket;
  return {.previous_incarnation = previous, .buckets = {bucket}};
}

class RestoresTest : public testing::Test {
 protected:
  void MarkLost(Restores& restores) {
    restores.OnLost(
        kBucket,
        {.version = 9, .generation = 2, .primary = {0, 1}, .replicas = {{0, 1}, {1, 1}}},
        start_);
  }

  static std::optional<ServerId> Choice(const Restores& restores, Clock::TimePoint now) {
    const auto choice = restores.Choose(kBucket, Load({}, 3), now);
    EXPECT_TRUE(choice.ok()) << choice.status();
    return choice.ok() && *choice ? std::optional((*choice)->server) : std::nullopt;
  }

  const Clock::TimePoint start_{std::chrono::hours(1)};
  Restores delayed_{false};
  Restores logged_{true};
};

TEST_F(RestoresTest, TheMostUpdatesOfTheHighestGenerationWinOnceAllReplicasHaveReported) {
  MarkLost(delayed_);
  delayed_.OnStored({0, 2}, Disk(1, {.generation = 2, .updates = 70, .complete = true}));
  EXPECT_EQ(Choice(delayed_, start_), std::nullopt);
  delayed_.OnStored({2, 1}, Disk(0, {.generation = 1, .updates = 999, .complete = true}));
  delayed_.OnStored({1, 2}, Disk(1, {.generation = 2, .updates = 80, .complete = true}));
  EXPECT_EQ(Choice(delayed_, start_), (ServerId{1, 2}));
}

TEST_F(RestoresTest, AReplicaThatDoesNotReportIsWaitedForAMinute) {
  MarkLost(delayed_);
  delayed_.OnStored({0, 2}, Disk(1, {.generation = 2, .updates = 70, .complete = true}));
  EXPECT_EQ(delayed_.NextTimer(start_), start_ + Restores::kTimeout);
  EXPECT_EQ(Choice(delayed_, start_ + Restores::kTimeout), (ServerId{0, 2}));
}

TEST_F(RestoresTest, WhoseDisksAreWaitedForIsKnownOnceOthersHaveReported) {
  MarkLost(delayed_);
  EXPECT_FALSE(delayed_.WaitsForDisks().has_value()) << "all may just start";
  delayed_.OnStored({0, 2}, Disk(1, {.generation = 2, .updates = 70, .complete = true}));
  const auto wait = delayed_.WaitsForDisks();
  ASSERT_TRUE(wait.has_value());
  EXPECT_EQ(wait->buckets, 1u);
  EXPECT_THAT(wait->servers, testing::ElementsAre(1u));
  EXPECT_EQ(wait->until, start_ + Restores::kTimeout);
  delayed_.OnStored({1, 2}, {.previous_incarnation = 1, .buckets = {}});
  EXPECT_FALSE(delayed_.WaitsForDisks().has_value());
}

TEST_F(RestoresTest, ServersWhoseDisksHaveTheSameAreToldTogether) {
  MarkLost(delayed_);
  delayed_.OnStored({0, 2}, {.previous_incarnation = 1, .buckets = {}});
  delayed_.OnStored({1, 2}, {.previous_incarnation = 1, .buckets = {}});
  EXPECT_THAT(std::string(delayed_.Choose(kBucket, Load({}, 3), start_).status().message()),
              testing::EndsWith("; parameter-server-0, parameter-server-1: nothing is stored"));
}

TEST_F(RestoresTest, WithoutAnyCompleteDiskItWaitsForTheRest) {
  MarkLost(delayed_);
  delayed_.OnStored({0, 2}, Disk(1, {.generation = 2, .detail = "shard 3: checksum"}));
  EXPECT_EQ(Choice(delayed_, start_ + 2 * Restores::kTimeout), std::nullopt);
  delayed_.OnStored({1, 2}, {.previous_incarnation = 1, .buckets = {}});
  const auto choice = delayed_.Choose(kBucket, Load({}, 3), start_);
  EXPECT_EQ(choice.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(choice.status().message()),
              HasSubstr("parameter-server-0: shard 3: checksum; parameter-server-1: nothing"));
}

TEST_F(RestoresTest, WithALogTheLastEntryOfTheLastReplicasWins) {
  MarkLost(logged_);
  logged_.OnStored(
      {0, 2},
      Disk(1, {.generation = 2, .updates = 99, .complete = true, .log_version = 8, .log_lsn = 40}));
  logged_.OnStored(
      {1, 2},
      Disk(1, {.generation = 2, .updates = 10, .complete = true, .log_version = 9, .log_lsn = 35}));
  logged_.OnStored(
      {2, 4},
      Disk(3,
           {.generation = 2, .updates = 999, .complete = true, .log_version = 9, .log_lsn = 99}));
  EXPECT_EQ(Choice(logged_, start_), (ServerId{1, 2}));
}

TEST_F(RestoresTest, WhatHasBeenTouchedOrRejectedSinceTheReportDoesNotCount) {
  MarkLost(delayed_);
  delayed_.OnStored({0, 2}, Disk(1, {.generation = 2, .updates = 70, .complete = true}));
  delayed_.OnStored({1, 2}, Disk(1, {.generation = 2, .updates = 80, .complete = true}));
  delayed_.Touch(kBucket, {1, 1});  // an earlier process
  EXPECT_EQ(Choice(delayed_, start_), (ServerId{1, 2}));
  delayed_.Touch(kBucket, {1, 2});
  EXPECT_EQ(Choice(delayed_, start_), (ServerId{0, 2}));
  delayed_.Reject(kBucket, {0, 2}, "unreadable");
  EXPECT_THAT(std::string(delayed_.Choose(kBucket, Load({}, 3), start_).status().message()),
              HasSubstr("parameter-server-0: unreadable"));
}

// A server that had been no replica was chosen, and has served without a word of it reaching the
// controller before it ended.
TEST_F(RestoresTest, WhatCameBackAndWasLostAgainCountsBeforeTheFirstLoss) {
  for (Restores* const restores : {&delayed_, &logged_}) {
    MarkLost(*restores);
    const Clock::TimePoint again = start_ + Restores::kTimeout + std::chrono::seconds(1);
    restores->OnLost(
        kBucket, {.version = 10, .generation = 3, .primary = {2, 1}, .replicas = {{2, 1}}}, again);
    for (const std::uint32_t slot : {0U, 1U}) {
      restores->OnStored(
          {slot, 2},
          Disk(
              1,
              {.generation = 2, .updates = 99, .complete = true, .log_version = 9, .log_lsn = 40}));
    }
    EXPECT_EQ(Choice(*restores, again), std::nullopt) << "it may come back in a moment";
    EXPECT_EQ(restores->NextTimer(again), again + Restores::kTimeout);
    restores->OnStored({2, 2}, Disk(1, {.generation = 3, .updates = 70, .complete = true}));
    EXPECT_EQ(Choice(*restores, again), (ServerId{2, 2}));
  }
}

TEST_F(RestoresTest, AServerThatWasChosenAndEndedBeforeItLoadedChangesNothing) {
  MarkLost(delayed_);
  delayed_.OnLost(
      kBucket, {.version = 10, .generation = 3, .primary = {2, 1}, .replicas = {{2, 1}}}, start_);
  delayed_.OnStored({2, 2}, Disk(1, {.generation = 2, .updates = 99, .complete = true}));
  delayed_.OnStored({0, 2}, Disk(1, {.generation = 2, .updates = 70, .complete = true}));
  delayed_.OnStored({1, 2}, Disk(1, {.generation = 2, .updates = 80, .complete = true}));
  EXPECT_EQ(Choice(delayed_, start_), (ServerId{1, 2}));
}

TEST_F(RestoresTest, AProcessThatIsGoneIsNoCandidate) {
  MarkLost(delayed_);
  delayed_.OnStored({0, 2}, Disk(1, {.generation = 2, .updates = 70, .complete = true}));
  delayed_.OnStored({1, 2}, Disk(1, {.generation = 2, .updates = 80, .complete = true}));
  delayed_.Forget(1);
  EXPECT_EQ(Choice(delayed_, start_), std::nullopt);
}

}  // namespace
}  // namespace adamant::controller
