#include "services/data_server/core/part_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace adamant::data_server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Two parts of two batches of two examples each; this server has slot 0.
class PartTableTest : public testing::Test {
 protected:
  void SetUp() override {
    EXPECT_THAT(table_.SetOwners({0, 1}), IsEmpty());
    table_.Open(1, now_);
  }

  // Answers the requests for records so far: none has been written yet.
  void AnswerReads() {
    for (const Output& output : std::exchange(out_, {})) {
      if (const auto* read = std::get_if<ReadRecord>(&output)) {
        table_.OnRead({.request = read->request, .record = std::nullopt}, now_);
      }
    }
  }

  const Clock::TimePoint now_{std::chrono::hours(1)};
  const PartLayout layout_{8, 2, 2};
  std::vector<Output> out_;
  PartTable table_{layout_, {}, out_};
};

TEST_F(PartTableTest, DispatchesNothingBeforeTheRecordIsRead) {
  EXPECT_FALSE(table_.Next().has_value());
  EXPECT_TRUE(table_.MayHaveNext());
  AnswerReads();
  ASSERT_TRUE(table_.Next().has_value());
  EXPECT_EQ(table_.Next()->batch.index, 1U);
  EXPECT_FALSE(table_.MayHaveNext());
}

TEST_F(PartTableTest, ReadsTheRecordsOfBothItsOwnAndOtherParts) {
  ASSERT_EQ(out_.size(), 2U);
  EXPECT_EQ(std::get<ReadRecord>(out_[0]).part, 0U);
  EXPECT_EQ(std::get<ReadRecord>(out_[1]).part, 1U);
  EXPECT_EQ(table_.NextWake(), now_ + PartTableOptions().poll_interval);
}

TEST_F(PartTableTest, TheAnswerForAPartThatWasTakenIsIgnored) {
  const std::uint64_t request = std::get<ReadRecord>(out_[0]).request;
  EXPECT_THAT(table_.SetOwners({1, 1}), ElementsAre(0));
  EXPECT_EQ(table_.Find(0), nullptr);
  EXPECT_EQ(table_.OnRead({.request = request, .record = std::nullopt}, now_), std::nullopt);
}

TEST_F(PartTableTest, ABatchThatCameBackGoesFirst) {
  AnswerReads();
  const BatchId first = table_.Next()->batch;
  table_.Find(0)->Return(first, true);
  const std::optional<PartTable::Choice> again = table_.Next();
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->batch, first);
  EXPECT_TRUE(again->again);
}

TEST_F(PartTableTest, WhatIsCountedCountsAsStoredWhenItsWriteIsAnswered) {
  AnswerReads();
  const Lease lease{.batch = table_.Next()->batch, .id = 1};
  table_.Find(0)->Judge({.slot = 0, .incarnation = 1}, lease);
  EXPECT_EQ(table_.JobExamples(), 2U);
  table_.StartWrites();
  EXPECT_EQ(table_.StoredExamples(), 0U);
  const std::uint64_t request = std::get<WriteRecord>(out_.back()).request;
  table_.OnWritten({.request = request, .version = 1});
  EXPECT_EQ(table_.StoredExamples(), 2U);
  EXPECT_EQ(table_.ClosedEpoch(), std::nullopt);
}

}  // namespace
}  // namespace adamant::data_server
