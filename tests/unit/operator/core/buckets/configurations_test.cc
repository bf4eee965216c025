#include "operator/core/buckets/configurations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/buckets/dead_servers.h"
#include "operator/core/buckets/promotions.h"

namespace adamant::controller {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::SizeIs;

constexpr ServerId kA{0, 1};
constexpr ServerId kB{1, 1};
constexpr ServerId kC{2, 1};

Proposal Promote(ServerId by,
                 ConfigurationVersion configuration_version,
                 std::uint64_t last_lsn = 0) {
  return {.bucket = 0,
          .configuration_version = configuration_version,
          .proposer = by,
          .last_lsn = last_lsn};
}

Proposal Drop(ServerId by, ServerId subject, ConfigurationVersion configuration_version) {
  return {.bucket = 0,
          .configuration_version = configuration_version,
          .kind = Proposal::Kind::kDrop,
          .proposer = by,
          .subject = subject};
}

Proposal Add(ServerId by, ServerId subject, ConfigurationVersion configuration_version) {
  return {.bucket = 0,
          .configuration_version = configuration_version,
          .kind = Proposal::Kind::kAdd,
          .proposer = by,
          .subject = subject};
}

// One bucket, created, of A with B and C as secondaries.
class ConfigurationsTest : public testing::Test {
 protected:
  ConfigurationsTest() {
    configurations_.Assign({kA});
    configurations_.OnServing(kA, 0, 1);
    for (const ServerId& learner : {kB, kC}) {
      configurations_.SetHint(0, {.learner = learner});
      configurations_.Apply(Add(kA, learner, configuration().version));
    }
  }

  [[nodiscard]] const Configuration& configuration() const { return configurations_.At(0); }

  JobState state_;
  Configurations configurations_{state_, 1};
  DeadServers dead_servers_{state_};
  Promotions promotions_{configurations_, dead_servers_};
  const Clock::TimePoint start_{std::chrono::hours(1)};
};

TEST_F(ConfigurationsTest, AdditionsRaiseTheConfigurationAndFulfilTheHint) {
  EXPECT_EQ(configuration().version, 3u);
  EXPECT_EQ(configuration().generation, 1u);
  EXPECT_THAT(configuration().replicas, ElementsAre(kA, kB, kC));
  EXPECT_EQ(configuration().learner, std::nullopt);
  EXPECT_TRUE(configurations_.IsServed(0));
  EXPECT_TRUE(configuration().created);
}

TEST_F(ConfigurationsTest, AProposalOfAnotherConfigurationIsNotAllowed) {
  EXPECT_TRUE(configurations_.Allows(Drop(kA, kB, 3)));
  EXPECT_FALSE(configurations_.Allows(Drop(kA, kB, 2)));
  EXPECT_FALSE(configurations_.Allows(Drop(kA, kB, 4)));
  EXPECT_FALSE(configurations_.Allows({.bucket = 1, .configuration_version = 3, .proposer = kB}));
}

TEST_F(ConfigurationsTest, OnlyThePrimaryAddsAndDropsAndOnlySecondariesAreProposed) {
  EXPECT_FALSE(configurations_.Allows(Drop(kB, kC, 3)));
  EXPECT_FALSE(configurations_.Allows(Drop(kA, kA, 3)));
  EXPECT_FALSE(configurations_.Allows(Promote(kA, 3)));
  EXPECT_FALSE(configurations_.Allows(Promote({1, 2}, 3)));  // another process of B's slot
  EXPECT_TRUE(configurations_.Allows(Promote(kB, 3)));
  EXPECT_FALSE(configurations_.Allows(Add(kA, {3, 1}, 3)));  // nobody has named this learner
}

TEST_F(ConfigurationsTest, TheOldPrimaryLeavesUnlessItReleasedTheConfiguration) {
  configurations_.Apply(Promote(kB, 3));
  EXPECT_EQ(configuration().primary, kB);
  EXPECT_THAT(configuration().replicas, ElementsAre(kB, kC));
  EXPECT_FALSE(configurations_.IsServed(0));
  Proposal released = Promote(kC, 4);
  released.released = true;
  configurations_.Apply(released);
  EXPECT_EQ(configuration().primary, kC);
  EXPECT_THAT(configuration().replicas, ElementsAre(kB, kC));
  EXPECT_EQ(configuration().version, 5u);
}

TEST_F(ConfigurationsTest, OnlyThePrimaryOfTheConfigurationServes) {
  configurations_.Apply(Promote(kB, 3));
  EXPECT_FALSE(configurations_.OnServing(kA, 0, 4));
  EXPECT_FALSE(configurations_.OnServing(kB, 0, 3));
  EXPECT_TRUE(configurations_.OnServing(kB, 0, 4));
  EXPECT_FALSE(configurations_.OnServing(kB, 0, 4));  // no news
  configurations_.Apply(Drop(kB, kC, 4));
  EXPECT_TRUE(configurations_.IsServed(0));
}

TEST_F(ConfigurationsTest, ARestoreRaisesConfigurationAndGeneration) {
  configurations_.Restore(0, {2, 9});
  EXPECT_EQ(configuration().version, 4u);
  EXPECT_EQ(configuration().generation, 2u);
  EXPECT_THAT(configuration().replicas, ElementsAre(ServerId{2, 9}));
  EXPECT_EQ(configurations_.ServiceOf(0), Configurations::Service::kRestoring);
}

TEST_F(ConfigurationsTest, DeathsAreThoseThatConfigurationsName) {
  EXPECT_FALSE(dead_servers_.MarkDead({0, 7}));
  EXPECT_TRUE(dead_servers_.MarkDead(kC));
  EXPECT_FALSE(dead_servers_.MarkDead(kC));
  EXPECT_TRUE(dead_servers_.MarkDeadUpTo(0, 5));
  EXPECT_FALSE(dead_servers_.MarkDeadUpTo(1, 0));
  EXPECT_THAT(state_.dead, ElementsAre(kA, kC));
  configurations_.Apply(Drop(kA, kC, 3));
  dead_servers_.Prune();
  EXPECT_THAT(state_.dead, ElementsAre(kA));
  EXPECT_TRUE(dead_servers_.MarkAllDead());
  EXPECT_THAT(state_.dead, IsSupersetOf(configuration().replicas));
}

TEST_F(ConfigurationsTest, APromotionWaitsForOtherProposalsAndTheHighestLsnWins) {
  promotions_.Add(Promote(kB, 3, 10), start_);
  EXPECT_THAT(promotions_.Decide(start_, 3), IsEmpty());
  EXPECT_EQ(promotions_.NextTimer(), start_ + Promotions::kWindow);
  promotions_.Add(Promote(kC, 3, 11), start_ + milliseconds(10));
  const auto winners = promotions_.Decide(start_ + milliseconds(10), 3);  // everybody has proposed
  ASSERT_THAT(winners, SizeIs(1));
  EXPECT_EQ(winners[0].proposer, kC);
  EXPECT_EQ(promotions_.NextTimer(), std::nullopt);
}

TEST_F(ConfigurationsTest, TheWindowEndsWithoutThoseWhoDoNotPropose) {
  promotions_.Add(Promote(kB, 3, 10), start_);
  const auto winners = promotions_.Decide(start_ + Promotions::kWindow, 3);
  ASSERT_THAT(winners, SizeIs(1));
  EXPECT_EQ(winners[0].proposer, kB);
}

TEST_F(ConfigurationsTest, TheDeadAreNotWaitedForAndDoNotWin) {
  dead_servers_.MarkDead(kC);
  promotions_.Add(Promote(kC, 3, 99), start_);
  promotions_.Add(Promote(kB, 3, 10), start_);
  const auto winners = promotions_.Decide(start_, 3);
  ASSERT_THAT(winners, SizeIs(1));
  EXPECT_EQ(winners[0].proposer, kB);
}

TEST_F(ConfigurationsTest, AReleasedConfigurationIsPromotedAtOnce) {
  Proposal released = Promote(kB, 3, 10);
  released.released = true;
  promotions_.Add(released, start_);
  EXPECT_THAT(promotions_.Decide(start_, 3), SizeIs(1));
}

TEST_F(ConfigurationsTest, AProposalThatAnotherChangeOvertookIsForgotten) {
  promotions_.Add(Promote(kB, 3, 10), start_);
  configurations_.Apply(Drop(kA, kC, 3));
  EXPECT_THAT(promotions_.Decide(start_ + Promotions::kWindow, 3), IsEmpty());
  EXPECT_EQ(promotions_.NextTimer(), std::nullopt);
}

TEST(PromotionsTest, AmongEqualsTheServersShareTheBuckets) {
  JobState state;
  Configurations configurations(state, 1);
  DeadServers dead_servers(state);
  Promotions promotions(configurations, dead_servers);
  constexpr std::uint32_t kBuckets = 8;
  configurations.Assign(std::vector<ServerId>(kBuckets, kA));
  for (BucketId bucket = 0; bucket < kBuckets; ++bucket) {
    for (const ServerId& learner : {kB, kC}) {
      Proposal add = Add(kA, learner, configurations.At(bucket).version);
      add.bucket = bucket;
      configurations.SetHint(bucket, {.learner = learner});
      configurations.Apply(add);
    }
    for (const ServerId& secondary : {kB, kC}) {
      Proposal take = Promote(secondary, 3, 5);
      take.bucket = bucket;
      promotions.Add(take, {});
    }
  }
  int of_b = 0;
  for (const Proposal& winner : promotions.Decide(Clock::TimePoint{} + Promotions::kWindow, 3)) {
    of_b += winner.proposer == kB ? 1 : 0;
  }
  EXPECT_EQ(of_b, kBuckets / 2);
}

}  // namespace
}  // namespace adamant::controller
