#include "services/data_server/core/record_requests.h"

#include <gtest/gtest.h>

namespace adamant::data_server {
namespace {

using std::chrono::milliseconds;

class RecordRequestsTest : public testing::Test {
 protected:
  // The last of what was asked for, as a read.
  [[nodiscard]] const ReadRecord& LastRead() const { return std::get<ReadRecord>(out_.back()); }

  std::vector<Output> out_;
  RecordRequests requests_{milliseconds(100), out_};
  const Clock::TimePoint start_{std::chrono::hours(1)};
};

TEST_F(RecordRequestsTest, AnAnswerIsTakenOnce) {
  requests_.Read(3);
  const std::uint64_t request = LastRead().request;
  EXPECT_EQ(LastRead().part, 3U);
  EXPECT_TRUE(requests_.IsUnderWay(3));
  EXPECT_EQ(requests_.Take(request), 3U);
  EXPECT_FALSE(requests_.IsUnderWay(3));
  EXPECT_EQ(requests_.Take(request), std::nullopt);
}

TEST_F(RecordRequestsTest, ReadsAndWritesHaveIdsOfTheirOwn) {
  requests_.Read(0);
  requests_.Write({.part = 1, .expected_version = 7, .value = "value"});
  const auto& write = std::get<WriteRecord>(out_.back());
  EXPECT_NE(write.request, std::get<ReadRecord>(out_.front()).request);
  EXPECT_EQ(write.expected_version, 7U);
  EXPECT_EQ(write.value, "value");
  EXPECT_EQ(requests_.Take(write.request), 1U);
  EXPECT_TRUE(requests_.IsUnderWay(0));
}

TEST_F(RecordRequestsTest, OfADroppedPartNothingIsLeft) {
  requests_.Read(0);
  const std::uint64_t request = LastRead().request;
  requests_.ReadAt(0, start_);
  requests_.Drop(0);
  EXPECT_EQ(requests_.Take(request), std::nullopt);
  EXPECT_EQ(requests_.NextWake(), std::nullopt);
  out_.clear();
  requests_.ReadDue(start_);
  EXPECT_TRUE(out_.empty());
}

TEST_F(RecordRequestsTest, ReadsWhenItIsTime) {
  requests_.ReadAt(2, start_ + milliseconds(10));
  EXPECT_EQ(requests_.NextWake(), start_ + milliseconds(10));
  requests_.ReadDue(start_);
  EXPECT_TRUE(out_.empty());
  requests_.ReadDue(start_ + milliseconds(10));
  EXPECT_EQ(LastRead().part, 2U);
  EXPECT_EQ(requests_.NextWake(), std::nullopt);
}

TEST_F(RecordRequestsTest, PollsOnceInEachInterval) {
  EXPECT_FALSE(requests_.TakePoll(start_));
  requests_.StartPolling(start_);
  EXPECT_EQ(requests_.NextWake(), start_);
  EXPECT_TRUE(requests_.TakePoll(start_));
  EXPECT_FALSE(requests_.TakePoll(start_ + milliseconds(99)));
  EXPECT_EQ(requests_.NextWake(), start_ + milliseconds(100));
  EXPECT_TRUE(requests_.TakePoll(start_ + milliseconds(100)));
  requests_.StopPolling();
  EXPECT_FALSE(requests_.TakePoll(start_ + milliseconds(300)));
}

}  // namespace
}  // namespace adamant::data_server
