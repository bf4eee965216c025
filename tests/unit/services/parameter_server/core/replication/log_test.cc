// Entries: prepared, acknowledged, committed, sent again, overwritten.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "tests/unit/services/parameter_server/core/replication/rig.h"

namespace adamant::parameter_server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Role = Replica::Role;

template <class Kind>
bool Is(const Packet& packet) {
  return std::holds_alternative<Kind>(packet.message.kind);
}

template <class Kind>
std::size_t Count(const std::deque<Packet>& packets) {
  return static_cast<std::size_t>(std::ranges::count_if(packets, Is<Kind>));
}

TEST(ReplicaLogTest, AnEntryIsCommittedWhenAllReplicasHaveAcknowledgedIt) {
  Rig rig;
  ASSERT_THAT(rig.members(), ElementsAre(0, 1, 2));
  rig.Cut(2, 0);
  EXPECT_EQ(rig.Append(0, "a"), 1U);
  rig.Settle();
  EXPECT_EQ(rig.replica(0).log().committed(), 0U);
  EXPECT_EQ(rig.replica(0).log().prepared(), 1U);
  EXPECT_EQ(rig.replica(1).log().prepared(), 1U);
  EXPECT_EQ(rig.replica(2).log().prepared(), 1U);
  EXPECT_EQ(rig.replica(0).status().slowest, 0U);
  rig.Heal();
  rig.Pass(milliseconds(1100));  // sent again
  EXPECT_EQ(rig.replica(0).log().committed(), 1U);
  EXPECT_THAT(rig[0].content, ElementsAre("a"));
  EXPECT_THAT(rig.replica(0).log().entries(), IsEmpty());
}

TEST(ReplicaLogTest, MembersApplyWhatTheNextMessageSaysIsCommitted) {
  Rig rig;
  rig.Append(0, "a");
  rig.Settle();
  EXPECT_THAT(rig[0].content, ElementsAre("a"));
  EXPECT_THAT(rig[1].content, IsEmpty());
  rig.Append(0, "b");
  rig.Settle();
  EXPECT_THAT(rig[1].content, ElementsAre("a"));
  rig.Pass(milliseconds(600));  // a beacon
  EXPECT_THAT(rig[1].content, ElementsAre("a", "b"));
  EXPECT_THAT(rig[2].content, ElementsAre("a", "b"));
}

TEST(ReplicaLogTest, ASinglePrimaryCommitsAtOnce) {
  Rig rig({.servers = 1, .copies = 1});
  rig.Append(0, "a");
  EXPECT_THAT(rig[0].content, ElementsAre("a"));
}

TEST(ReplicaLogTest, BelowMinInSyncNothingIsAppended) {
  Rig rig({.min_in_sync = 2});
  rig.names_learners = false;
  rig.Write(0, {0, 1});
  rig.Settle();
  EXPECT_TRUE(rig.replica(0).CanAppend());
  rig.Write(0, {0});
  rig.Settle();
  EXPECT_EQ(rig.replica(0).role(), Role::kServing);
  EXPECT_FALSE(rig.replica(0).CanAppend());
  EXPECT_TRUE(rig.replica(0).CanRead(rig.now()));
}

TEST(ReplicaLogTest, BelowMinInSyncNothingIsCommitted) {
  Rig rig({.min_in_sync = 2});
  rig.names_learners = false;
  rig.CutOff(1);
  rig.CutOff(2);
  rig.Append(0, "a");
  rig.Write(0, {0});
  rig.Settle();
  EXPECT_EQ(rig.replica(0).log().committed(), 0U);
  EXPECT_THAT(rig[0].content, IsEmpty());
}

TEST(ReplicaLogTest, TheLogIsBounded) {
  Rig rig({.max_log_bytes = 250});
  rig.Cut(1, 0);
  rig.Append(0, "a");
  rig.Append(0, "b");
  EXPECT_TRUE(rig.replica(0).CanAppend());
  rig.Append(0, "c");
  EXPECT_FALSE(rig.replica(0).CanAppend());
  rig.Heal();
  rig.Pass(milliseconds(1100));
  EXPECT_TRUE(rig.replica(0).CanAppend());
  EXPECT_THAT(rig[0].content, ElementsAre("a", "b", "c"));
}

TEST(ReplicaLogTest, DuplicateAndReorderedPreparesAreAppliedOnceInOrder) {
  Rig rig;
  rig.Append(0, "a");
  rig.Append(0, "b");
  rig.Append(0, "c");
  std::deque<Packet> packets = rig.Take();
  std::ranges::reverse(packets);
  for (int round = 0; round < 3; ++round) {
    for (const Packet& packet : packets) {
      rig.Deliver(packet);
    }
  }
  rig.Pass(milliseconds(600));
  for (std::uint32_t slot = 0; slot < 3; ++slot) {
    EXPECT_THAT(rig[slot].content, ElementsAre("a", "b", "c")) << slot;
  }
}

TEST(ReplicaLogTest, AGapIsAnsweredAndFilledAtOnce) {
  Rig rig;
  rig.Append(0, "a");
  rig.Append(0, "b");
  bool lost = false;
  rig.Drop([&](const Packet& packet) {
    const bool drop = !lost && Is<Prepare>(packet) && packet.to.slot == 1;
    lost = lost || drop;
    return drop;
  });
  rig.Settle();
  EXPECT_TRUE(lost);
  EXPECT_EQ(rig.replica(0).log().committed(), 2U);
}

TEST(ReplicaLogTest, ABurstBehindAGapIsSentAgainOnce) {
  Rig rig;
  for (int i = 0; i < 6; ++i) {
    rig.Append(0, std::string(1, static_cast<char>('a' + i)));
  }
  std::size_t prepares = 0;
  rig.Drop([&](const Packet& packet) {
    const bool counts = Is<Prepare>(packet) && packet.to.slot == 1;
    prepares += counts ? 1 : 0;
    return counts && prepares == 1;
  });
  rig.Settle();
  EXPECT_EQ(rig.replica(0).log().committed(), 6U);
  EXPECT_EQ(prepares, 12U);
}

TEST(ReplicaLogTest, WhatIsNotAcknowledgedIsSentAgainAfterASecond) {
  Rig rig;
  rig.Append(0, "a");
  rig.Take();
  rig.Pass(milliseconds(900));
  EXPECT_EQ(rig.replica(0).log().committed(), 0U);
  rig.Pass(milliseconds(200));
  EXPECT_EQ(rig.replica(0).log().committed(), 1U);
}

TEST(ReplicaLogTest, ANewStreamStartsWithABeaconAndSendsWhatIsMissing) {
  Rig rig;
  rig.Append(0, "a");
  rig.Take();
  rig.replica(0).OnConnected(rig[1].self, rig.now());
  rig.replica(0).OnConnected(rig[2].self, rig.now());
  EXPECT_EQ(Count<Beacon>(rig.packets), 2U);
  EXPECT_EQ(Count<Prepare>(rig.packets), 0U);
  rig.Settle();
  EXPECT_EQ(rig.replica(0).log().committed(), 1U);
}

TEST(ReplicaLogTest, MessagesOfOtherConfigurationsChangeNothing) {
  Rig rig;
  rig.Append(0, "a");
  const std::deque<Packet> old = rig.Take();
  rig.names_learners = false;
  rig.Write(0, {0, 1});  // without acknowledgements of before
  rig.Take();
  rig.Append(0, "b");
  for (const Packet& packet : old) {
    rig.Deliver(packet);
  }
  EXPECT_EQ(rig.replica(1).log().prepared(), 0U);
  EXPECT_THAT(rig.Take(), IsEmpty());
  const auto other = std::make_shared<const Entry>(Entry{.lsn = 1, .origin = 1});
  rig.Deliver({rig[2].self,  // no primary
               rig[1].self,
               Rig::Message(rig.record.version, Prepare{.entry = other})});
  EXPECT_EQ(rig.replica(1).log().prepared(), 0U);
}

TEST(ReplicaLogTest, AcknowledgementsOfAnConfigurationCountInItAlone) {
  Rig rig;
  rig.names_learners = false;
  rig.Append(0, "a");
  rig.Cut(1, 0);
  rig.Cut(2, 0);
  rig.Settle();
  rig.Write(0, {0, 1});
  for (const std::uint32_t slot : {1U, 2U}) {
    rig.Deliver({rig[slot].self,
                 rig[0].self,
                 Rig::Message(rig.record.version - 1, PrepareAck{.acked = 1})});
  }
  EXPECT_EQ(rig.replica(0).log().committed(), 0U);
  rig.Deliver({rig[2].self, rig[0].self, Rig::Message(rig.record.version, PrepareAck{.acked = 1})});
  EXPECT_EQ(rig.replica(0).log().committed(), 0U);  // no replica
}

TEST(ReplicaLogTest, APromotionKeepsAllThatWasAcknowledgedAndCommitsWhatWasPrepared) {
  Rig rig;
  rig.Append(0, "a");
  rig.Settle();
  rig.Append(0, "b");
  rig.Drop([](const Packet& packet) { return Is<PrepareAck>(packet); });
  rig.Settle();
  rig.Drop(nullptr);
  rig.names_learners = false;
  rig.Crash(0);
  rig.Pass(seconds(6));
  ASSERT_NE(rig.primary(), 0U);
  const std::uint32_t other = 3 - rig.primary();
  EXPECT_EQ(rig.replica(rig.primary()).role(), Role::kServing);
  EXPECT_THAT(rig[rig.primary()].content, ElementsAre("a", "b"));
  EXPECT_THAT(rig[other].content, ElementsAre("a", "b"));
  EXPECT_EQ(rig[rig.primary()].served, 1);
}

TEST(ReplicaLogTest, WhatOnlyOneReplicaHadIsOverwritten) {
  Rig rig;
  rig.names_learners = false;
  rig.Append(0, "a");
  rig.Append(0, "b");
  rig.Cut(0, 1);
  rig.Settle();  // 2 has it, 1 does not
  ASSERT_EQ(rig.replica(2).log().prepared(), 2U);
  rig.Crash(0);
  rig.Heal();
  rig.Write(1, {1, 2});
  rig.Settle();
  EXPECT_EQ(rig.replica(1).role(), Role::kServing);
  EXPECT_EQ(rig.replica(2).log().prepared(), 2U);  // not cut, there is nothing in its place
  rig.Append(1, "c");
  rig.Pass(seconds(1));
  EXPECT_THAT(rig[1].content, ElementsAre("c"));
  EXPECT_THAT(rig[2].content, ElementsAre("c"));
  EXPECT_EQ(rig.replica(2).log().prepared(), 1U);  // and what lay behind it is gone
}

// What it has from an earlier configuration in the place of the missing one may be another entry.
TEST(ReplicaLogTest, AnOldEntryFillsNoGap) {
  Rig rig;
  rig.names_learners = false;
  rig.Append(0, "a");
  rig.Cut(0, 1);
  rig.Settle();  // 2 has it, 1 does not
  ASSERT_EQ(rig.replica(2).log().prepared(), 1U);
  rig.Crash(0);
  rig.Heal();
  rig.Write(1, {1, 2});
  rig.Settle();
  rig.Append(1, "b");  // in its place
  rig.Append(1, "c");
  rig.Drop([](const Packet& packet) {
    const auto* prepare = std::get_if<Prepare>(&packet.message.kind);
    return prepare != nullptr && prepare->entry->lsn == 1;
  });
  rig.Settle();
  EXPECT_EQ(rig.replica(1).log().committed(), 0U);
  EXPECT_EQ(rig.replica(2).log().prepared(), 1U);
  rig.Drop(nullptr);
  rig.Pass(seconds(2));
  EXPECT_THAT(rig[1].content, ElementsAre("b", "c"));
  EXPECT_THAT(rig[2].content, ElementsAre("b", "c"));
}

TEST(ReplicaLogTest, AReplicaDoesNotCutItsLogToItsCommitPoint) {
  Rig rig;
  rig.names_learners = false;
  rig.Append(0, "a");
  rig.Settle();  // committed at 0; 1 and 2 do not know
  ASSERT_EQ(rig.replica(1).log().committed(), 0U);
  rig.Crash(0);
  rig.decides = false;
  rig.Write(1, {1, 2});
  EXPECT_EQ(rig.replica(2).log().prepared(), 1U);
  rig.Take();
  rig.Crash(1);
  rig.Write(2, {2});
  EXPECT_THAT(rig[2].content, ElementsAre("a"));
}

TEST(ReplicaLogTest, CommittedInAnEarlierConfigurationIsTakenForGrantedNotSentAgain) {
  Rig rig;
  rig.names_learners = false;
  for (const char* name : {"a", "b", "c"}) {
    rig.Append(0, name);
    rig.Settle();
  }
  rig.Write(0, {0, 1});
  EXPECT_EQ(rig.replica(1).log().committed(), 2U);
  rig.Settle();
  EXPECT_EQ(rig.replica(1).log().committed(), 3U);  // by the beacon's base
  EXPECT_THAT(rig[1].content, ElementsAre("a", "b", "c"));
}

TEST(ReplicaLogTest, WhatIsKnownToBeCommittedIsAppliedOnlyOnceAcknowledgedInThisConfiguration) {
  Rig rig;
  rig.names_learners = false;
  rig.Append(0, "a");
  rig.Cut(0, 1);
  rig.Settle();  // 2 has it
  rig.Heal();
  rig.Crash(0);
  rig.Write(1, {1, 2});
  rig.Settle();
  rig.Append(1, "b");  // in its place
  rig.Deliver({rig[1].self,
               rig[2].self,
               Rig::Message(rig.record.version, Beacon{.primary = rig[1].self, .committed = 1})});
  EXPECT_THAT(rig[2].content, IsEmpty());
  rig.Settle();
  rig.Pass(milliseconds(600));
  EXPECT_THAT(rig[2].content, ElementsAre("b"));
}

}  // namespace
}  // namespace adamant::parameter_server
