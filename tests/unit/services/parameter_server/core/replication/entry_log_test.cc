#include "services/parameter_server/core/replication/entry_log.h"

#include <gtest/gtest.h>

#include <memory>

namespace adamant::parameter_server {
namespace {

EntryPtr At(Lsn lsn, ConfigurationVersion origin, bool updates = true) {
  Entry entry;
  entry.lsn = lsn;
  entry.origin = origin;
  entry.bytes = 10;
  if (updates) {
    entry.updates.emplace_back();
  }
  return std::make_shared<const Entry>(std::move(entry));
}

TEST(EntryLogTest, WithoutLoggingAnEntryCountsAtOnce) {
  EntryLog log(EntryLog::Logging::kNothing);
  EXPECT_EQ(log.Keep(At(1, 1)), 0u);
  EXPECT_EQ(log.Keep(At(2, 1)), 0u);
  EXPECT_EQ(log.prepared(), 2u);
  EXPECT_EQ(log.persisted(), 2u);
  EXPECT_EQ(log.bytes(), 20u);
  EXPECT_EQ(log.CommitNext()->lsn, 1u);
  EXPECT_EQ(log.committed(), 1u);
  EXPECT_EQ(log.At(2)->lsn, 2u);
  EXPECT_EQ(log.bytes(), 10u);
}

TEST(EntryLogTest, WhatMustBeStoredCountsInTheOrderOfItsTickets) {
  EntryLog log(EntryLog::Logging::kAll);
  const std::uint64_t first = log.Keep(At(1, 1));
  const std::uint64_t second = log.Keep(At(2, 1));
  EXPECT_LT(first, second);
  EXPECT_EQ(log.persisted(), 0u);
  EXPECT_FALSE(log.OnPersisted(second));
  EXPECT_TRUE(log.OnPersisted(first));
  EXPECT_EQ(log.persisted(), 1u);
  EXPECT_FALSE(log.OnPersisted(first));
  EXPECT_TRUE(log.OnPersisted(second));
  EXPECT_EQ(log.persisted(), 2u);
}

TEST(EntryLogTest, AnEntryThatIsOverwrittenTakesWhatFollowedAndItsTicketWithIt) {
  EntryLog log(EntryLog::Logging::kAll);
  log.OnPersisted(log.Keep(At(1, 1)));
  const std::uint64_t overwritten = log.Keep(At(2, 1));
  log.Keep(At(3, 1));
  EXPECT_TRUE(log.Has(*At(2, 1)));
  EXPECT_FALSE(log.Has(*At(2, 2)));
  EXPECT_FALSE(log.Has(*At(4, 1)));
  log.CutFrom(2);
  EXPECT_EQ(log.prepared(), 1u);
  const std::uint64_t anew = log.Keep(At(2, 2));
  EXPECT_FALSE(log.OnPersisted(overwritten));
  EXPECT_EQ(log.persisted(), 1u);
  EXPECT_TRUE(log.OnPersisted(anew));
  EXPECT_EQ(log.persisted(), 2u);
}

TEST(EntryLogTest, OneThatIsStoredAndOverwrittenIsToBeStoredItself) {
  EntryLog log(EntryLog::Logging::kAll);
  log.OnPersisted(log.Keep(At(1, 1)));
  log.CutFrom(1);
  EXPECT_EQ(log.persisted(), 0u);
}

TEST(EntryLogTest, TheDiskLacksWhatFollowsTheFirstChangeThatWasNotFlushed) {
  EntryLog log(EntryLog::Logging::kNothing);
  for (Lsn lsn = 1; lsn <= 4; ++lsn) {
    log.Keep(At(lsn, 1, lsn == 2 || lsn == 3));
    log.CommitNext();
  }
  EXPECT_EQ(log.OnDisk(), 1u);
  log.OnFlushed(2);
  EXPECT_EQ(log.OnDisk(), 2u);
  log.OnFlushed(3);
  EXPECT_EQ(log.OnDisk(), 4u);  // the fourth changes nothing
}

TEST(EntryLogTest, ACopyCountsWhenItIsOnDisk) {
  EntryLog log(EntryLog::Logging::kAll);
  log.Keep(At(1, 1));
  log.BeginAt(7, 3);
  EXPECT_EQ(log.committed(), 7u);
  EXPECT_EQ(log.committed_origin(), 3u);
  EXPECT_EQ(log.prepared(), 7u);
  EXPECT_EQ(log.persisted(), 7u);
  EXPECT_EQ(log.OnDisk(), 7u);
  EXPECT_EQ(log.bytes(), 0u);
}

TEST(EntryLogTest, TheOriginIsThatOfTheLastCommittedEntry) {
  EntryLog log(EntryLog::Logging::kNothing);
  EXPECT_EQ(log.committed_origin(), 0u);
  log.Keep(At(1, 4));
  log.Keep(At(2, 6));
  log.CommitNext();
  EXPECT_EQ(log.committed_origin(), 4u);
  log.CommitNext();
  EXPECT_EQ(log.committed_origin(), 6u);
  log.Clear();
  EXPECT_EQ(log.committed_origin(), 0u);
}

}  // namespace
}  // namespace adamant::parameter_server
