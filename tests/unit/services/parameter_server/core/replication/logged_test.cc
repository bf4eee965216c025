// Logged modes: entries count when they are stored.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <variant>

#include "tests/unit/services/parameter_server/core/replication/learner_rig.h"

namespace adamant::parameter_server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// What the last acknowledgement among the messages says.
std::optional<Lsn> LastAck(const std::deque<Packet>& packets) {
  std::optional<Lsn> acked;
  for (const Packet& packet : packets) {
    if (const auto* ack = std::get_if<PrepareAck>(&packet.message.kind)) {
      acked = ack->acked;
    }
  }
  return acked;
}

TEST(ReplicaLoggedTest, AnEntryIsCommittedWhenEveryReplicaHasStoredIt) {
  Rig rig({.logging = Replica::Logging::kAll});
  rig.persists = false;
  rig.Append(0, "a");
  rig.Settle();
  ASSERT_THAT(rig[0].to_persist, SizeIs(1));
  ASSERT_THAT(rig[1].to_persist, SizeIs(1));
  rig.replica(0).Persisted(rig[0].to_persist[0].ticket, rig.now());
  rig.replica(1).Persisted(rig[1].to_persist[0].ticket, rig.now());
  rig.Pass(seconds(2));  // it is sent again, and not stored again
  EXPECT_EQ(rig.replica(0).log().committed(), 0U);
  EXPECT_THAT(rig[2].to_persist, SizeIs(1));
  rig.replica(2).Persisted(rig[2].to_persist[0].ticket, rig.now());
  rig.Settle();
  EXPECT_THAT(rig[0].content, ElementsAre("a"));
}

TEST(ReplicaLoggedTest, ThePrimarysOwnDiskCounts) {
  Rig rig({.servers = 1, .copies = 1, .logging = Replica::Logging::kAll});
  rig.persists = false;
  rig.Append(0, "a");
  rig.Append(0, "b");
  EXPECT_THAT(rig[0].content, IsEmpty());
  rig.replica(0).Persisted(rig[0].to_persist[0].ticket, rig.now());
  EXPECT_THAT(rig[0].content, ElementsAre("a"));
  rig.replica(0).Persisted(rig[0].to_persist[1].ticket, rig.now());
  EXPECT_THAT(rig[0].content, ElementsAre("a", "b"));
}

TEST(ReplicaLoggedTest, WhatIsOverwrittenBeforeItIsStoredDoesNotCount) {
  Rig rig({.logging = Replica::Logging::kAll});
  rig.names_learners = false;
  rig.persists = false;
  rig.Append(0, "a");
  rig.Append(0, "b");
  rig.Cut(0, 1);
  rig.Settle();
  ASSERT_THAT(rig[2].to_persist, SizeIs(2));
  rig.Heal();
  rig.Crash(0);
  rig.Write(1, {1, 2});
  rig.Settle();
  rig.Append(1, "c");  // where a was
  rig.Settle();
  ASSERT_THAT(rig[2].to_persist, SizeIs(3));
  rig.replica(1).Persisted(rig[1].to_persist[0].ticket, rig.now());
  rig.replica(2).Persisted(rig[2].to_persist[0].ticket, rig.now());  // of a and b, late
  rig.replica(2).Persisted(rig[2].to_persist[1].ticket, rig.now());
  rig.Pass(milliseconds(600));
  EXPECT_EQ(rig.replica(1).log().committed(), 0U);
  rig.replica(2).Persisted(rig[2].to_persist[2].ticket, rig.now());
  rig.Pass(milliseconds(600));
  EXPECT_THAT(rig[1].content, ElementsAre("c"));
  EXPECT_THAT(rig[2].content, ElementsAre("c"));
}

TEST(ReplicaLoggedTest, WhatWasStoredAndIsOverwrittenMustBeStoredAgain) {
  Rig rig({.logging = Replica::Logging::kAll});
  rig.names_learners = false;
  rig.Append(0, "a");
  rig.Append(0, "b");
  rig.Cut(0, 1);
  rig.Settle();
  rig.Heal();
  rig.Crash(0);
  rig.Write(1, {1, 2});
  rig.Settle();
  rig.persists = false;
  rig.Append(1, "c");
  rig.replica(1).Persisted(rig[1].to_persist[0].ticket, rig.now());
  rig.Pass(milliseconds(600));
  EXPECT_EQ(rig.replica(1).log().committed(), 0U);
  rig.persists = true;
  rig.Settle();
  EXPECT_THAT(rig[1].content, ElementsAre("c"));
}

// The disk has begun with what was queued for a copy that is given up: it is erased for the next.
TEST(ReplicaLoggedTest, WhatWasStoredForAnEarlierCopyDoesNotCountForTheNext) {
  Rig rig({.copies = 2, .logging = Replica::Logging::kAll});
  rig.names_learners = false;
  rig.record.learner = rig[2].self;
  rig.Drop(
      [](const Packet& packet) { return std::holds_alternative<CopyPart>(packet.message.kind); });
  rig.replica(0).OnConfiguration(rig.record, rig.now());
  rig.Append(0, "a");
  rig.persists = false;
  rig.Settle();
  ASSERT_THAT(rig[2].to_persist, SizeIs(1));
  const ToPersist early = rig[2].to_persist[0];
  rig.persists = true;
  rig.replica(0).Persisted(rig[0].to_persist[0].ticket, rig.now());
  rig.Cut(1, 0);
  rig.replica(0).OnConnected(rig[2].self, rig.now());  // the copy begins anew
  rig.persists = false;
  rig.Settle();
  ASSERT_THAT(rig[2].to_persist, SizeIs(2));
  ASSERT_EQ(rig[2].to_persist[1].entry, early.entry) << "the same entry comes again";
  rig.replica(2).Persisted(early.ticket, rig.now());
  EXPECT_EQ(LastAck(rig.Take()), std::nullopt);
  rig.replica(2).Persisted(rig[2].to_persist[1].ticket, rig.now());
  EXPECT_EQ(LastAck(rig.Take()), Lsn{1});
}

TEST(ReplicaLoggedTest, ALearnerStoresWhatFollowsItsCopy) {
  Rig rig({.copies = 2, .logging = Replica::Logging::kAll});
  rig.Append(0, "a");
  rig.Settle();
  rig.names_learners = false;
  rig.record.learner = rig[2].self;
  rig.replica(0).OnConfiguration(rig.record, rig.now());
  rig.Cut(1, 0);
  rig.Append(0, "b");
  rig.persists = false;
  rig.Settle();
  EXPECT_THAT(rig[2].to_persist, SizeIs(1));
  EXPECT_THAT(rig.members(), ElementsAre(0, 1, 2));
  rig.Heal();
  rig.Pass(seconds(1));
  EXPECT_EQ(rig.replica(0).log().committed(), 1U);
  rig.persists = true;
  rig.Pass(seconds(1));
  EXPECT_EQ(rig.replica(0).log().committed(), 2U);
  EXPECT_THAT(rig[2].content, ElementsAre("a", "b"));
}

// Commits do not wait for it before its copy is there.
TEST(ReplicaLoggedTest, ALearnerAppliesWhatIsCommittedWhenItsDiskHasIt) {
  LearnerRig rig({.copies = 2, .logging = Replica::Logging::kAll});
  rig.Hold(Is<CopyPart>);
  rig.NameLearner();
  rig.Settle();
  rig.Append(0, "a");
  rig.persists = false;
  rig.Settle();
  rig.replica(0).Persisted(rig[0].to_persist[0].ticket, rig.now());
  rig.replica(1).Persisted(rig[1].to_persist[0].ticket, rig.now());
  rig.Settle();
  ASSERT_THAT(rig[0].content, ElementsAre("a"));
  rig.Append(0, "b");  // tells that a is committed
  rig.Settle();
  rig.Deliver(rig.held.at(0));
  EXPECT_THAT(rig[2].content, IsEmpty());
  rig.replica(2).Persisted(rig[2].to_persist[0].ticket, rig.now());
  EXPECT_THAT(rig[2].content, ElementsAre("a"));
}

TEST(ReplicaLoggedTest, WhereOnlyRecordsAreStoredUpdatesBehindThemWait) {
  Rig rig({.logging = Replica::Logging::kRecords});
  rig.persists = false;
  rig.AppendUpdate(0);
  rig.Settle();
  EXPECT_THAT(rig[0].content, ElementsAre("update"));
  EXPECT_THAT(rig[0].to_persist, IsEmpty());
  rig.AppendUpdate(0);
  rig.Append(0, "a");
  rig.AppendUpdate(0);
  rig.Pass(milliseconds(600));
  EXPECT_THAT(rig[0].content, ElementsAre("update", "update"));
  EXPECT_THAT(rig[1].content, ElementsAre("update", "update"));
  for (const std::uint32_t slot : {0U, 1U, 2U}) {
    ASSERT_THAT(rig[slot].to_persist, SizeIs(1)) << slot;
  }
  rig.persists = true;
  rig.Settle();
  EXPECT_THAT(rig[0].content, ElementsAre("update", "update", "a", "update"));
}

TEST(ReplicaLoggedTest, ARecordThatIsOverwrittenByAnUpdateNeedsNoStoring) {
  Rig rig({.logging = Replica::Logging::kRecords});
  rig.names_learners = false;
  rig.persists = false;
  rig.Append(0, "a");
  rig.Cut(0, 1);
  rig.Settle();
  rig.Heal();
  rig.Crash(0);
  rig.Write(1, {1, 2});
  rig.Settle();
  rig.AppendUpdate(1);
  rig.Settle();
  EXPECT_THAT(rig[1].content, ElementsAre("update"));
}

}  // namespace
}  // namespace adamant::parameter_server
