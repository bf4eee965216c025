#include "operator/core/buckets/spread.h"

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

// Servers that follow all advice at once.
class SpreadTest : public testing::Test {
 protected:
  void Start(std::uint32_t servers, std::uint32_t buckets, std::uint32_t copies) {
    settings_.parameter_servers = servers;
    settings_.buckets = buckets;
    settings_.copies = copies;
    settings_.min_in_sync = copies == 3 ? 2 : 1;
    for (std::uint32_t slot = 0; slot < servers; ++slot) {
      servers_.push_back({.holder = {slot, 1}, .running = true});
    }
    configurations_.Assign(spread_.Assign(servers_));
    Serve();
  }

  void Serve() {
    for (std::uint32_t bucket = 0; bucket < configurations_.size(); ++bucket) {
      const Bucket& record = configurations_.At(bucket);
      configurations_.OnServing(record.primary, bucket, record.epoch);
    }
  }

  void Advise() { spread_.Advise(servers_, configurations_, now_); }

  // One round of advice and what the primaries make of it. Returns whether there was any.
  bool Round() {
    Advise();
    CountMoves();
    bool any = false;
    for (std::uint32_t bucket = 0; bucket < configurations_.size(); ++bucket) {
      const Bucket record = configurations_.At(bucket);
      Proposal proposal{.bucket = bucket, .epoch = record.epoch, .proposer = record.primary};
      if (record.heir) {
        proposal.proposer = *record.heir;
        proposal.released = true;
      } else if (record.learner) {
        proposal.kind = Proposal::Kind::kAdd;
        proposal.subject = *record.learner;
      } else if (record.leaver && record.leaver != record.primary) {
        proposal.kind = Proposal::Kind::kDrop;
        proposal.subject = *record.leaver;
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
    for (const Bucket& record : configurations_.records()) {
      if (record.learner) {
        ++moves[record.learner->slot];
        ++moves[record.primary.slot];
      }
    }
    EXPECT_THAT(moves, Each(Le(Spread::kMovesPerServer)));
  }

  void RunToRest() {
    for (int i = 0; i < 1000; ++i) {
      if (!Round()) {
        return;
      }
    }
    FAIL() << "the advice never ends";
  }

  [[nodiscard]] std::uint32_t CountLearners() const {
    const auto& records = configurations_.records();
    return static_cast<std::uint32_t>(std::ranges::count_if(
        records, [](const Bucket& record) { return record.learner.has_value(); }));
  }

  // A server dies, its buckets are taken over or it is dropped from them.
  void Kill(std::uint32_t slot) {
    servers_[slot].running = false;
    servers_[slot].away_since = now_;
    for (std::uint32_t bucket = 0; bucket < configurations_.size(); ++bucket) {
      const Bucket record = configurations_.At(bucket);
      for (const Holder& member : record.members) {
        if (member.slot != slot) {
          continue;
        }
        Proposal proposal{.bucket = bucket, .epoch = record.epoch, .proposer = record.primary};
        if (member == record.primary) {
          proposal.proposer = record.members[1] == member ? record.members[0] : record.members[1];
        } else {
          proposal.kind = Proposal::Kind::kDrop;
          proposal.subject = member;
        }
        configurations_.Apply(proposal);
      }
    }
    Serve();
  }

  void Return(std::uint32_t slot) {
    servers_[slot].running = true;
    ++servers_[slot].holder.incarnation;
  }

  void ExpectFull() {
    for (const Bucket& record : configurations_.records()) {
      EXPECT_EQ(record.members.size(), settings_.copies);
    }
  }

  // Nobody has more than one above the least.
  void ExpectEven() {
    const Load load(configurations_.records(), settings_.parameter_servers);
    const auto even = [](const std::vector<std::uint32_t>& counts) {
      const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
      return *most - *least;
    };
    EXPECT_LE(even(load.copies), 1u);
    EXPECT_LE(even(load.primaries), 2u);
  }

  JobSettings settings_;
  const Spread spread_{settings_};
  JobState state_;
  Configurations configurations_{state_, 1};
  std::vector<Spread::Server> servers_;
  Clock::TimePoint now_{std::chrono::hours(1)};
};

TEST_F(SpreadTest, BucketsGetTheirCopiesOnDifferentServersEvenly) {
  Start(4, 64, 3);
  RunToRest();
  ExpectFull();
  ExpectEven();
  for (const Bucket& record : configurations_.records()) {
    std::vector<std::uint32_t> slots;
    for (const Holder& member : record.members) {
      slots.push_back(member.slot);
    }
    std::sort(slots.begin(), slots.end());
    EXPECT_EQ(std::unique(slots.begin(), slots.end()), slots.end());
  }
}

TEST_F(SpreadTest, SmallBucketsGetTheirCopiesTogether) {
  Start(3, 64, 3);
  settings_.bucket_bytes.assign(64, 20'000);
  Advise();
  EXPECT_EQ(CountLearners(), 64u);
}

TEST_F(SpreadTest, AServerMovesNoMoreBytesAtATimeThanItMay) {
  Start(2, 64, 2);
  settings_.bucket_bytes.assign(64, Spread::kMovedBytesPerServer / 4);
  Advise();
  EXPECT_EQ(CountLearners(), 4u);  // each is learnt from one of the two, and learns at the other
  settings_.bucket_bytes.assign(64, 10 * Spread::kMovedBytesPerServer);
  configurations_.Assign(spread_.Assign(servers_));
  Serve();
  Advise();
  EXPECT_EQ(CountLearners(), 2u);
}

TEST_F(SpreadTest, SecondCopiesAreMadeBeforeThirdOnes) {
  Start(3, 30, 3);
  for (bool done = false; !done;) {
    Advise();
    const auto& records = configurations_.records();
    const auto has_one = [](const Bucket& record) { return record.members.size() == 1; };
    const auto waiting = std::ranges::count_if(records, [&](const Bucket& record) {
      return has_one(record) && !record.learner.has_value();
    });
    const auto third = std::ranges::count_if(records, [](const Bucket& record) {
      return record.members.size() == 2 && record.learner.has_value();
    });
    EXPECT_TRUE(waiting == 0 || third == 0) << waiting << " wait, " << third << " get a third";
    done = waiting == 0;
    Round();
  }
}

TEST_F(SpreadTest, CopiesGoToOtherZonesAndMachines) {
  Start(6, 24, 3);
  for (std::uint32_t slot = 0; slot < 6; ++slot) {
    servers_[slot].zone = std::string(1, static_cast<char>('a' + slot / 2));
    servers_[slot].node = "node-" + std::to_string(slot);
  }
  RunToRest();
  ExpectFull();
  for (const Bucket& record : configurations_.records()) {
    std::vector<std::string> zones;
    for (const Holder& member : record.members) {
      zones.push_back(servers_[member.slot].zone);
    }
    std::sort(zones.begin(), zones.end());
    EXPECT_THAT(zones, testing::ElementsAre("a", "b", "c"));
  }
}

TEST_F(SpreadTest, CopiesThatCameToShareAMachineMoveApartWhenThereIsAnother) {
  Start(4, 64, 2);
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    servers_[slot].node = slot < 2 ? "one" : "two";
  }
  RunToRest();
  const auto together = [this] {
    return std::ranges::count_if(configurations_.records(), [this](const Bucket& record) {
      return servers_[record.members[0].slot].node == servers_[record.members[1].slot].node;
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

TEST_F(SpreadTest, CopiesThatCameToShareAZoneMoveApartAsFarAsServersAreThere) {
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
  for (const Bucket& record : configurations_.records()) {
    std::set<std::string> zones;
    for (const Holder& member : record.members) {
      zones.insert(servers_[member.slot].zone);
    }
    EXPECT_THAT(zones, testing::SizeIs(3));
  }
}

TEST_F(SpreadTest, AServerThatIsAwayMayReturnWithinTenSeconds) {
  Start(4, 16, 3);
  RunToRest();
  Kill(3);
  now_ += Spread::kAwayTime - seconds(1);
  EXPECT_FALSE(Round());
  EXPECT_EQ(Spread::NextTimer(servers_, now_), now_ + seconds(1));
  now_ += seconds(1);
  EXPECT_TRUE(Round());
  RunToRest();
  ExpectFull();
}

TEST_F(SpreadTest, BelowTheMinimumCopiesAreMadeAtOnce) {
  Start(4, 16, 3);
  RunToRest();
  Kill(3);
  Kill(2);
  Advise();
  int urgent = 0;
  for (const Bucket& record : configurations_.records()) {
    if (record.learner) {
      ++urgent;
      EXPECT_LT(record.members.size(), settings_.min_in_sync);
    }
  }
  EXPECT_GT(urgent, 0);
}

TEST_F(SpreadTest, AServerThatReturnsGetsItsShareBack) {
  Start(4, 64, 3);
  RunToRest();
  Kill(3);
  now_ += Spread::kAwayTime;
  RunToRest();
  Return(3);
  RunToRest();
  ExpectFull();
  ExpectEven();
}

TEST_F(SpreadTest, SingleCopiesMoveToAServerThatJoins) {
  Start(3, 30, 1);
  for (std::uint32_t bucket = 0; bucket < 30; ++bucket) {
    configurations_.Reassign(bucket, servers_[bucket % 2].holder);  // the third has none
  }
  Serve();
  RunToRest();
  ExpectFull();
  ExpectEven();
}

TEST_F(SpreadTest, ADrainingServerHandsItsPrimariesOverAndLeavesItsBuckets) {
  Start(3, 12, 2);
  RunToRest();
  servers_[0].draining = true;
  RunToRest();
  const Load load(configurations_.records(), 3);
  EXPECT_EQ(load.copies[0], 0u);
  EXPECT_THAT(load.primaries, testing::Contains(Ge(5u)));
  for (const Bucket& record : configurations_.records()) {
    EXPECT_THAT(record.members, testing::SizeIs(Ge(1u)));
    EXPECT_FALSE(record.learner) << "it may come back: its copies are not made elsewhere yet";
  }
}

TEST_F(SpreadTest, ADrainingServerStaysWhereTooFewWouldRemain) {
  Start(3, 12, 3);
  RunToRest();
  servers_[0].draining = true;
  servers_[1].draining = true;
  RunToRest();
  for (const Bucket& record : configurations_.records()) {
    EXPECT_THAT(record.members, testing::SizeIs(3u));
  }
  servers_[1].draining = false;
  RunToRest();
  EXPECT_EQ(Load(configurations_.records(), 3).copies[0], 0u);
}

TEST_F(SpreadTest, ADeadServerIsReplacedForBucketsThatWereNeverCreated) {
  Start(3, 6, 1);
  servers_[0].running = false;
  const auto holder = Spread::Replacement(servers_, Load(configurations_.records(), 3));
  ASSERT_TRUE(holder.has_value());
  EXPECT_NE(holder->slot, 0u);
}

}  // namespace
}  // namespace adamant::controller
