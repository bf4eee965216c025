#include "services/parameter_server/core/replication/local_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "tests/unit/services/parameter_server/core/replication/host_mock.h"
#include "tests/unit/services/parameter_server/core/replication/rig.h"

namespace adamant::parameter_server {
namespace {

using testing::_;
using testing::InSequence;
using testing::SaveArg;
using testing::StrictMock;

// A copy of whose entries records are to be stored, and updates not.
class LocalCopyTest : public testing::Test {
 protected:
  static EntryPtr Record() {
    return std::make_shared<const Entry>(Entry{.puts = {{.key = "key", .value = "value"}}});
  }
  static EntryPtr Update() { return std::make_shared<const Entry>(Entry{.updates = {{}}}); }

  StrictMock<HostMock> host_;
  LocalCopy local_{kBucket, EntryLog::Logging::kRecords, host_};
};

TEST_F(LocalCopyTest, WhatCountsOnlyWhenItIsStoredIsHandedToTheHostWithItsTicket) {
  const EntryPtr record = Record();
  local_.Keep(Update());
  std::uint64_t ticket = 0;
  EXPECT_CALL(host_, Persist(kBucket, record, _)).WillOnce(SaveArg<2>(&ticket));
  local_.Keep(record);
  EXPECT_EQ(local_.log().prepared(), 2u);
  EXPECT_EQ(local_.log().persisted(), 1u);
  EXPECT_TRUE(local_.log().OnPersisted(ticket));
}

TEST_F(LocalCopyTest, EntriesUpToTheLimitAreHandedToTheHostInOrderAndOnce) {
  const EntryPtr entries[] = {Update(), Update(), Update()};
  for (const EntryPtr& entry : entries) {
    local_.Keep(entry);
  }
  const InSequence in_order;
  EXPECT_CALL(host_, Commit(kBucket, entries[0]));
  EXPECT_CALL(host_, Commit(kBucket, entries[1]));
  local_.CommitUpTo(2);
  local_.CommitUpTo(1);
  local_.CommitUpTo(2);
  EXPECT_EQ(local_.log().committed(), 2u);
}

TEST_F(LocalCopyTest, TheContentIsThereOnceThatIsSaid) {
  EXPECT_FALSE(local_.has_content());
  local_.SetHasContent();
  EXPECT_TRUE(local_.has_content());
}

TEST_F(LocalCopyTest, ACopyThatBeginsIsAllThatCounts) {
  local_.SetHasContent();
  local_.Keep(Update());
  local_.BeginCopy(9, 5, 2);
  EXPECT_FALSE(local_.has_content());
  EXPECT_EQ(local_.copy(), 9u);
  EXPECT_EQ(local_.log().committed(), 5u);
  EXPECT_EQ(local_.log().prepared(), 5u);
}

TEST_F(LocalCopyTest, WhatIsKeptBehindACopyIsCommittedBehindIt) {
  local_.BeginCopy(9, 5, 2);
  const EntryPtr next = Update();
  local_.Keep(next);
  local_.CommitUpTo(5);
  EXPECT_CALL(host_, Commit(kBucket, next));
  local_.CommitUpTo(6);
}

TEST_F(LocalCopyTest, ACopyThatHasEndedLeavesWhatItHasBrought) {
  local_.BeginCopy(9, 5, 2);
  local_.SetHasContent();
  local_.EndCopy();
  EXPECT_EQ(local_.copy(), 0u);
  EXPECT_TRUE(local_.has_content());
  EXPECT_EQ(local_.log().committed(), 5u);
}

TEST_F(LocalCopyTest, NothingIsLeftOfWhatIsForgotten) {
  local_.BeginCopy(9, 5, 2);
  local_.SetHasContent();
  local_.Keep(Update());
  local_.Clear();
  EXPECT_FALSE(local_.has_content());
  EXPECT_EQ(local_.copy(), 0u);
  EXPECT_EQ(local_.log().prepared(), 0u);
}

}  // namespace
}  // namespace adamant::parameter_server
