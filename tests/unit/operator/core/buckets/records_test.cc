#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/buckets/configurations.h"
#include "operator/core/buckets/deaths.h"
#include "operator/core/buckets/takeovers.h"

namespace adamant::controller {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::SizeIs;

constexpr Holder kA{0, 1};
constexpr Holder kB{1, 1};
constexpr Holder kC{2, 1};

Proposal TakeOver(Holder by, std::uint64_t epoch, std::uint64_t last_lsn = 0) {
  return {.bucket = 0, .epoch = epoch, .proposer = by, .last_lsn = last_lsn};
}

Proposal Drop(Holder by, Holder subject, std::uint64_t epoch) {
  return {.bucket = 0,
          .epoch = epoch,
          .kind = Proposal::Kind::kDrop,
          .proposer = by,
          .subject = subject};
}

Proposal Add(Holder by, Holder subject, std::uint64_t epoch) {
  return {.bucket = 0,
          .epoch = epoch,
          .kind = Proposal::Kind::kAdd,
          .proposer = by,
          .subject = subject};
}

// One bucket, created, of A with B and C as secondaries.
class RecordsTest : public testing::Test {
 protected:
  RecordsTest() {
    configurations_.Assign({kA});
    configurations_.OnServing(kA, 0, 1);
    for (const Holder& learner : {kB, kC}) {
      configurations_.SetAdvice(0, {.learner = learner});
      configurations_.Apply(Add(kA, learner, record().epoch));
    }
  }

  [[nodiscard]] const Bucket& record() const { return configurations_.At(0); }

  JobState state_;
  Configurations configurations_{state_, 1};
  Deaths deaths_{state_};
  Takeovers takeovers_{configurations_, deaths_};
  const Clock::TimePoint start_{std::chrono::hours(1)};
};

TEST_F(RecordsTest, AdditionsRaiseTheEpochAndFulfilTheAdvice) {
  EXPECT_EQ(record().epoch, 3u);
  EXPECT_EQ(record().generation, 1u);
  EXPECT_THAT(record().members, ElementsAre(kA, kB, kC));
  EXPECT_EQ(record().learner, std::nullopt);
  EXPECT_TRUE(configurations_.IsServed(0));
  EXPECT_TRUE(record().created);
}

TEST_F(RecordsTest, AProposalOfAnotherEpochIsNotAllowed) {
  EXPECT_TRUE(configurations_.Allows(Drop(kA, kB, 3)));
  EXPECT_FALSE(configurations_.Allows(Drop(kA, kB, 2)));
  EXPECT_FALSE(configurations_.Allows(Drop(kA, kB, 4)));
  EXPECT_FALSE(configurations_.Allows({.bucket = 1, .epoch = 3, .proposer = kB}));
}

TEST_F(RecordsTest, OnlyThePrimaryAddsAndDropsAndOnlySecondariesTakeOver) {
  EXPECT_FALSE(configurations_.Allows(Drop(kB, kC, 3)));
  EXPECT_FALSE(configurations_.Allows(Drop(kA, kA, 3)));
  EXPECT_FALSE(configurations_.Allows(TakeOver(kA, 3)));
  EXPECT_FALSE(configurations_.Allows(TakeOver({1, 2}, 3)));  // another process of B's slot
  EXPECT_TRUE(configurations_.Allows(TakeOver(kB, 3)));
  EXPECT_FALSE(configurations_.Allows(Add(kA, {3, 1}, 3)));  // nobody has named this learner
}

TEST_F(RecordsTest, TheOldPrimaryLeavesUnlessItReleasedTheEpoch) {
  configurations_.Apply(TakeOver(kB, 3));
  EXPECT_EQ(record().primary, kB);
  EXPECT_THAT(record().members, ElementsAre(kB, kC));
  EXPECT_FALSE(configurations_.IsServed(0));
  Proposal released = TakeOver(kC, 4);
  released.released = true;
  configurations_.Apply(released);
  EXPECT_EQ(record().primary, kC);
  EXPECT_THAT(record().members, ElementsAre(kB, kC));
  EXPECT_EQ(record().epoch, 5u);
}

TEST_F(RecordsTest, OnlyThePrimaryOfTheEpochServes) {
  configurations_.Apply(TakeOver(kB, 3));
  EXPECT_FALSE(configurations_.OnServing(kA, 0, 4));
  EXPECT_FALSE(configurations_.OnServing(kB, 0, 3));
  EXPECT_TRUE(configurations_.OnServing(kB, 0, 4));
  EXPECT_FALSE(configurations_.OnServing(kB, 0, 4));  // no news
  configurations_.Apply(Drop(kB, kC, 4));
  EXPECT_TRUE(configurations_.IsServed(0));
}

TEST_F(RecordsTest, ARestoreRaisesEpochAndGeneration) {
  configurations_.Restore(0, {2, 9});
  EXPECT_EQ(record().epoch, 4u);
  EXPECT_EQ(record().generation, 2u);
  EXPECT_THAT(record().members, ElementsAre(Holder{2, 9}));
  EXPECT_EQ(configurations_.ServiceOf(0), Configurations::Service::kRestoring);
}

TEST_F(RecordsTest, DeathsAreThoseThatRecordsName) {
  EXPECT_FALSE(deaths_.Prove({0, 7}));
  EXPECT_TRUE(deaths_.Prove(kC));
  EXPECT_FALSE(deaths_.Prove(kC));
  EXPECT_TRUE(deaths_.ProveUpTo(0, 5));
  EXPECT_FALSE(deaths_.ProveUpTo(1, 0));
  EXPECT_THAT(state_.dead, ElementsAre(kA, kC));
  configurations_.Apply(Drop(kA, kC, 3));
  deaths_.Prune();
  EXPECT_THAT(state_.dead, ElementsAre(kA));
  EXPECT_TRUE(deaths_.ProveAll());
  EXPECT_THAT(state_.dead, IsSupersetOf(record().members));
}

TEST_F(RecordsTest, ATakeOverWaitsForOtherProposalsAndTheHighestLsnWins) {
  takeovers_.Add(TakeOver(kB, 3, 10), start_);
  EXPECT_THAT(takeovers_.Decide(start_, 3), IsEmpty());
  EXPECT_EQ(takeovers_.NextTimer(), start_ + Takeovers::kWindow);
  takeovers_.Add(TakeOver(kC, 3, 11), start_ + milliseconds(10));
  const auto winners = takeovers_.Decide(start_ + milliseconds(10), 3);  // everybody has proposed
  ASSERT_THAT(winners, SizeIs(1));
  EXPECT_EQ(winners[0].proposer, kC);
  EXPECT_EQ(takeovers_.NextTimer(), std::nullopt);
}

TEST_F(RecordsTest, TheWindowEndsWithoutThoseWhoDoNotPropose) {
  takeovers_.Add(TakeOver(kB, 3, 10), start_);
  const auto winners = takeovers_.Decide(start_ + Takeovers::kWindow, 3);
  ASSERT_THAT(winners, SizeIs(1));
  EXPECT_EQ(winners[0].proposer, kB);
}

TEST_F(RecordsTest, TheDeadAreNotWaitedForAndDoNotWin) {
  deaths_.Prove(kC);
  takeovers_.Add(TakeOver(kC, 3, 99), start_);
  takeovers_.Add(TakeOver(kB, 3, 10), start_);
  const auto winners = takeovers_.Decide(start_, 3);
  ASSERT_THAT(winners, SizeIs(1));
  EXPECT_EQ(winners[0].proposer, kB);
}

TEST_F(RecordsTest, AReleasedEpochIsTakenOverAtOnce) {
  Proposal released = TakeOver(kB, 3, 10);
  released.released = true;
  takeovers_.Add(released, start_);
  EXPECT_THAT(takeovers_.Decide(start_, 3), SizeIs(1));
}

TEST_F(RecordsTest, AProposalThatAnotherChangeOvertookIsForgotten) {
  takeovers_.Add(TakeOver(kB, 3, 10), start_);
  configurations_.Apply(Drop(kA, kC, 3));
  EXPECT_THAT(takeovers_.Decide(start_ + Takeovers::kWindow, 3), IsEmpty());
  EXPECT_EQ(takeovers_.NextTimer(), std::nullopt);
}

TEST(TakeoversTest, AmongEqualsTheServersShareTheBuckets) {
  JobState state;
  Configurations configurations(state, 1);
  Deaths deaths(state);
  Takeovers takeovers(configurations, deaths);
  constexpr std::uint32_t kBuckets = 8;
  configurations.Assign(std::vector<Holder>(kBuckets, kA));
  for (std::uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    for (const Holder& learner : {kB, kC}) {
      Proposal add = Add(kA, learner, configurations.At(bucket).epoch);
      add.bucket = bucket;
      configurations.SetAdvice(bucket, {.learner = learner});
      configurations.Apply(add);
    }
    for (const Holder& secondary : {kB, kC}) {
      Proposal take = TakeOver(secondary, 3, 5);
      take.bucket = bucket;
      takeovers.Add(take, {});
    }
  }
  int of_b = 0;
  for (const Proposal& winner : takeovers.Decide(Clock::TimePoint{} + Takeovers::kWindow, 3)) {
    of_b += winner.proposer == kB ? 1 : 0;
  }
  EXPECT_EQ(of_b, kBuckets / 2);
}

}  // namespace
}  // namespace adamant::controller
