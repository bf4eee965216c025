#include "operator/core/buckets/balancer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace adamant::controller {
namespace {

using std::chrono::seconds;
using testing::Each;
using testing::Ge;
using testing::Le;

// Servers that follow all hints at once.
class BalancerTest : public testing::Test {
 protected:
  void Start(std::uint32_t servers, std::uint32_t buckets, std::uint32_t copies) {
    settings_.parameter_servers = servers;
    settings_.buckets = buckets;
    settings_.copies = copies;
    settings_.min_in_sync = copies == 3 ? 2 : 1;
    for (std::uint32_t slot = 0; slot < servers; ++slot) {
      servers_.push_back({.id = {slot, 1}, .running = true});
    }
    configurations_.Assign(balancer_.Assign(servers_));
    Serve();
  }

  void Serve() {
    for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
      const Configuration& configuration = configurations_.At(bucket);
      configurations_.OnServing(configuration.primary, bucket, configuration.version);
    }
  }

  void PlaceHints() { balancer_.PlaceHints(servers_, configurations_, now_); }

  // One round of hints and what the primaries make of it. Returns whether there was any.
  bool Round() {
    PlaceHints();
    CountMoves();
    bool any = false;
    for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
      const Configuration configuration = configurations_.At(bucket);
      Proposal proposal{.bucket = bucket,
                        .configuration_version = configuration.version,
                        .proposer = configuration.primary};
      if (configuration.successor) {
        proposal.proposer = *configuration.successor;
        proposal.released = true;
      } else if (configuration.learner) {
        proposal.kind = Proposal::Kind::kAdd;
        proposal.subject = *configuration.learner;
      } else if (configuration.departing && configuration.departing != configuration.primary) {
        proposal.kind = Proposal::Kind::kDrop;
        proposal.subject = *configuration.departing;
      } else {
        continue;
      }
      any = true;
      EXPECT_TRUE(configurations_.Allows(proposal));
      configurations_.Apply(proposal);
    }
    Serve();
    return any;
  }

  void CountMoves() {
    std::vector<std::uint32_t> moves(servers_.size());
    for (const Configuration& configuration : configurations_.all()) {
      if (configuration.learner) {
        ++moves[configuration.learner->slot];
        ++moves[configuration.primary.slot];
      }
    }
    EXPECT_THAT(moves, Each(Le(Balancer::kMovesPerServer)));
  }

  void RunToRest() {
    for (int i = 0; i < 1000; ++i) {
      if (!Round()) {
        return;
      }
    }
    FAIL() << "the hint never ends";
  }

  [[nodiscard]] std::uint32_t CountLearners() const {
    const auto& configurations = configurations_.all();
    return static_cast<std::uint32_t>(std::ranges::count_if(
        configurations,
        [](const Configuration& configuration) { return configuration.learner.has_value(); }));
  }

  // A server dies, its buckets are taken over or it is dropped from them.
  void Kill(std::uint32_t slot) {
    servers_[slot].running = false;
    servers_[slot].away_since = now_;
    for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
      const Configuration configuration = configurations_.At(bucket);
      for (const ServerId& replica : configuration.replicas) {
        if (replica.slot != slot) {
          continue;
        }
        Proposal proposal{.bucket = bucket,
                          .configuration_version = configuration.version,
                          .proposer = configuration.primary};
        if (replica == configuration.primary) {
          proposal.proposer = configuration.replicas[1] == replica ? configuration.replicas[0]
                                                                   : configuration.replicas[1];
        } else {
          proposal.kind = Proposal::Kind::kDrop;
          proposal.subject = replica;
        }
        configurations_.Apply(proposal);
      }
    }
    Serve();
  }

  void Return(std::uint32_t slot) {
    servers_[slot].running = true;
    ++servers_[slot].id.incarnation;
  }

  void ExpectFull() {
    for (const Configuration& configuration : configurations_.all()) {
      EXPECT_EQ(configuration.replicas.size(), settings_.copies);
    }
  }

  // Nobody has more than one above the least.
  void ExpectEven() {
    const Load load(configurations_.all(), settings_.parameter_servers);
    const auto even = [](const std::vector<std::uint32_t>& counts) {
      const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
      return *most - *least;
    };
    EXPECT_LE(even(load.copies), 1u);
    EXPECT_LE(even(load.primaries), 2u);
  }

  JobSettings settings_;
  const Balancer balancer_{settings_};
  JobState state_;
  Configurations configurations_{state_, 1};
  std::vector<Balancer::Server> servers_;
  Clock::TimePoint now_{std::chrono::hours(1)};
};

TEST_F(BalancerTest, BucketsGetTheirCopiesOnDifferentServersEvenly) {
  Start(4, 64, 3);
  RunToRest();
  ExpectFull();
  ExpectEven();
  for (const Configuration& configuration : configurations_.all()) {
    std::vector<std::uint32_t> slots;
    for (const ServerId& replica : configuration.replicas) {
      slots.push_back(replica.slot);
    }
    std::sort(slots.begin(), slots.end());
    EXPECT_EQ(std::unique(slots.begin(), slots.end()), slots.end());
  }
}

TEST_F(BalancerTest, SmallBucketsGetTheirCopiesTogether) {
  Start(3, 64, 3);
  settings_.bucket_bytes.assign(64, 20'000);
  PlaceHints();
  EXPECT_EQ(CountLearners(), 64u);
}

TEST_F(BalancerTest, AServerMovesNoMoreBytesAtATimeThanItMay) {
  Start(2, 64, 2);
  settings_.bucket_bytes.assign(64, Balancer::kMovedBytesPerServer / 4);
  PlaceHints();
  EXPECT_EQ(CountLearners(), 4u);  // each is learnt from one of the two, and learns at the other
  settings_.bucket_bytes.assign(64, 10 * Balancer::kMovedBytesPerServer);
  configurations_.Assign(balancer_.Assign(servers_));
  Serve();
  PlaceHints();
  EXPECT_EQ(CountLearners(), 2u);
}

TEST_F(BalancerTest, SecondCopiesAreMadeBeforeThirdOnes) {
  Start(3, 30, 3);
  for (bool done = false; !done;) {
    PlaceHints();
    const auto& configurations = configurations_.all();
    const auto has_one = [](const Configuration& configuration) {
      return configuration.replicas.size() == 1;
    };
    const auto waiting =
        std::ranges::count_if(configurations, [&](const Configuration& configuration) {
          return has_one(configuration) && !configuration.learner.has_value();
        });
    const auto third =
        std::ranges::count_if(configurations, [](const Configuration& configuration) {
          return configuration.replicas.size() == 2 && configuration.learner.has_value();
        });
    EXPECT_TRUE(waiting == 0 || third == 0) << waiting << " wait, " << third << " get a third";
    done = waiting == 0;
    Round();
  }
}

TEST_F(BalancerTest, CopiesGoToOtherZonesAndMachines) {
  Start(6, 24, 3);
  for (std::uint32_t slot = 0; slot < 6; ++slot) {
    servers_[slot].zone = std::string(1, static_cast<char>('a' + slot / 2));
    servers_[slot].node = "node-" + std::to_string(slot);
  }
  RunToRest();
  ExpectFull();
  for (const Configuration& configuration : configurations_.all()) {
    std::vector<std::string> zones;
    for (const ServerId& replica : configuration.replicas) {
      zones.push_back(servers_[replica.slot].zone);
    }
    std::sort(zones.begin(), zones.end());
    EXPECT_THAT(zones, testing::ElementsAre("a", "b", "c"));
  }
}

TEST_F(BalancerTest, CopiesThatCameToShareAMachineMoveApartWhenThereIsAnother) {
  Start(4, 64, 2);
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    servers_[slot].node = slot < 2 ? "one" : "two";
  }
  RunToRest();
  const auto together = [this] {
    return std::ranges::count_if(configurations_.all(), [this](const Configuration& configuration) {
      return servers_[configuration.replicas[0].slot].node ==
             servers_[configuration.replicas[1].slot].node;
    });
  };
  ASSERT_EQ(together(), 0);
  // A machine was lost, its servers were made anew on the other: one comes back to a third.
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    servers_[slot].node = slot == 3 ? "three" : "one";
  }
  ASSERT_GT(together(), 20);
  RunToRest();
  ExpectFull();
  EXPECT_EQ(together(), 0);
}

TEST_F(BalancerTest, CopiesThatCameToShareAZoneMoveApartAsFarAsServersAreThere) {
  Start(6, 60, 3);
  for (std::uint32_t slot = 0; slot < 6; ++slot) {
    servers_[slot].zone = slot < 3 ? "a" : "b";
    servers_[slot].node = "node-" + std::to_string(slot);
  }
  RunToRest();
  servers_[5].zone = "c";
  servers_[4].zone = "c";
  RunToRest();
  ExpectFull();
  for (const Configuration& configuration : configurations_.all()) {
    std::set<std::string> zones;
    for (const ServerId& replica : configuration.replicas) {
      zones.insert(servers_[replica.slot].zone);
    }
    EXPECT_THAT(zones, testing::SizeIs(3));
  }
}

TEST_F(BalancerTest, AServerThatIsAwayMayReturnWithinTenSeconds) {
  Start(4, 16, 3);
  RunToRest();
  Kill(3);
  now_ += Balancer::kAwayTime - seconds(1);
  EXPECT_FALSE(Round());
  EXPECT_EQ(Balancer::NextTimer(servers_, now_), now_ + seconds(1));
  now_ += seconds(1);
  EXPECT_TRUE(Round());
  RunToRest();
  ExpectFull();
}

TEST_F(BalancerTest, BelowTheMinimumCopiesAreMadeAtOnce) {
  Start(4, 16, 3);
  RunToRest();
  Kill(3);
  Kill(2);
  PlaceHints();
  int urgent = 0;
  for (const Configuration& configuration : configurations_.all()) {
    if (configuration.learner) {
      ++urgent;
      EXPECT_LT(configuration.replicas.size(), settings_.min_in_sync);
    }
  }
  EXPECT_GT(urgent, 0);
}

TEST_F(BalancerTest, AServerThatReturnsGetsItsShareBack) {
  Start(4, 64, 3);
  RunToRest();
  Kill(3);
  now_ += Balancer::kAwayTime;
  RunToRest();
  Return(3);
  RunToRest();
  ExpectFull();
  ExpectEven();
}

TEST_F(BalancerTest, SingleCopiesMoveToAServerThatJoins) {
  Start(3, 30, 1);
  for (BucketId bucket = 0; bucket < 30; ++bucket) {
    configurations_.Reassign(bucket, servers_[bucket % 2].id);  // the third has none
  }
  Serve();
  RunToRest();
  ExpectFull();
  ExpectEven();
}

TEST_F(BalancerTest, ADrainingServerHandsItsPrimariesOverAndLeavesItsBuckets) {
  Start(3, 12, 2);
  RunToRest();
  servers_[0].draining = true;
  RunToRest();
  const Load load(configurations_.all(), 3);
  EXPECT_EQ(load.copies[0], 0u);
  EXPECT_THAT(load.primaries, testing::Contains(Ge(5u)));
  for (const Configuration& configuration : configurations_.all()) {
    EXPECT_THAT(configuration.replicas, testing::SizeIs(Ge(1u)));
    EXPECT_FALSE(configuration.learner)
        << "it may come back: its copies are not made elsewhere yet";
  }
}

TEST_F(BalancerTest, ADrainingServerStaysWhereTooFewWouldRemain) {
  Start(3, 12, 3);
  RunToRest();
  servers_[0].draining = true;
  servers_[1].draining = true;
  RunToRest();
  for (const Configuration& configuration : configurations_.all()) {
    EXPECT_THAT(configuration.replicas, testing::SizeIs(3u));
  }
  servers_[1].draining = false;
  RunToRest();
  EXPECT_EQ(Load(configurations_.all(), 3).copies[0], 0u);
}

TEST_F(BalancerTest, ADeadServerIsReplacedForBucketsThatWereNeverCreated) {
  Start(3, 6, 1);
  servers_[0].running = false;
  const auto server = Balancer::Replacement(servers_, Load(configurations_.all(), 3));
  ASSERT_TRUE(server.has_value());
  EXPECT_NE(server->slot, 0u);
}

}  // namespace
}  // namespace adamant::controller
