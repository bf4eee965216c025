#include "operator/core/bucket_outage.h"

#include <gtest/gtest.h>

namespace adamant::controller {
namespace {

class BucketOutageTest : public testing::Test {
 protected:
  // What a report of this second says.
  std::string MessageAt(int second,
                        const std::map<std::string, std::uint32_t>& states,
                        Phase phase = Phase::kRunning,
                        const std::string& message = "") {
    JobReport report;
    report.phase = phase;
    report.message = message;
    report.buckets.resize(64);
    report.bucket_summary.states = states;
    outage_.TellIn(report,
                   Clock::TimePoint(std::chrono::seconds(second)),
                   BucketOutage::WallTime(std::chrono::seconds(1'700'000'000 + second)));
    return report.message;
  }

  BucketOutage outage_;
};

TEST_F(BucketOutageTest, SaysHowManyBucketsTrainingWaitsForAndSinceWhen) {
  EXPECT_EQ(MessageAt(0, {{"Ready", 64}}), "");
  EXPECT_EQ(MessageAt(10, {{"Ready", 60}, {"Blocked", 4}}), "") << "it may be a take-over";
  EXPECT_EQ(MessageAt(13, {{"Ready", 61}, {"Blocked", 2}, {"Restoring", 1}}),
            "3 of 64 buckets have too few live copies to take updates since 2023-11-14T22:13:30Z "
            "(2 Blocked, 1 Restoring); training waits for them");
  EXPECT_EQ(MessageAt(14, {{"Degraded", 64}}), "") << "these take updates";
  EXPECT_EQ(MessageAt(15, {{"Blocked", 1}}), "") << "another outage";
}

TEST_F(BucketOutageTest, SaysNothingWhereSomethingElseIsToldOrNobodyTrains) {
  MessageAt(0, {{"Blocked", 4}});
  EXPECT_EQ(MessageAt(9, {{"Blocked", 4}}, Phase::kRunning, "data-server-0 loads"),
            "data-server-0 loads");
  EXPECT_NE(MessageAt(9, {{"Blocked", 4}}, Phase::kEvaluating), "");
  EXPECT_EQ(MessageAt(9, {{"Blocked", 4}}, Phase::kFailed), "");
}

}  // namespace
}  // namespace adamant::controller
