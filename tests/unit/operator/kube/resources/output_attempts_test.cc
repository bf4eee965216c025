#include "operator/kube/resources/output_attempts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/fake_clock.h"

namespace adamant::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

ObservedPod Pod(const std::string& uid, ObservedPod::State state) {
  return {.name = "mnist-export-7", .uid = uid, .state = state, .how = "exited with code 1"};
}

class OutputAttemptsTest : public testing::Test {
 protected:
  FakeClock clock_;
  OutputAttempts attempts_{clock_};
};

TEST_F(OutputAttemptsTest, APodThatDoesNotStartIsToldOfAfterAMinute) {
  EXPECT_TRUE(attempts_.CheckStarted(Pod("a", ObservedPod::State::kPending)).ok());
  clock_.Advance(seconds(59));
  EXPECT_TRUE(attempts_.CheckStarted(Pod("a", ObservedPod::State::kPending)).ok());
  clock_.Advance(seconds(1));
  EXPECT_THAT(std::string(attempts_.CheckStarted(Pod("a", ObservedPod::State::kPending)).message()),
              HasSubstr("its pod mnist-export-7 has not started for 60 s"));
  EXPECT_TRUE(attempts_.CheckStarted(Pod("a", ObservedPod::State::kRunning)).ok());
  EXPECT_TRUE(attempts_.CheckStarted(Pod("b", ObservedPod::State::kPending)).ok());
}

TEST_F(OutputAttemptsTest, WhatFailsAgainAndAgainIsGivenMoreAndMoreTime) {
  EXPECT_TRUE(attempts_.IsDue());
  milliseconds wait = OutputAttempts::kFirstWait;
  for (const char* uid : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    EXPECT_EQ(attempts_.OnFailed(Pod(uid, ObservedPod::State::kEnded)), "exited with code 1");
    EXPECT_TRUE(attempts_.HasFailed(Pod(uid, ObservedPod::State::kEnded)));
    EXPECT_EQ(attempts_.Next(), clock_.Now() + wait);
    clock_.Advance(wait - milliseconds(1));
    EXPECT_FALSE(attempts_.IsDue());
    clock_.Advance(milliseconds(1));
    EXPECT_TRUE(attempts_.IsDue());
    wait = std::min(2 * wait, milliseconds(OutputAttempts::kLastWait));
  }
  EXPECT_EQ(wait, OutputAttempts::kLastWait);
  attempts_.Clear();
  attempts_.OnFailed(Pod("i", ObservedPod::State::kEnded));
  EXPECT_EQ(attempts_.Next(), clock_.Now() + OutputAttempts::kFirstWait);
}

TEST_F(OutputAttemptsTest, APodThatIsGoneSaysNothing) {
  ObservedPod gone = Pod("a", ObservedPod::State::kGone);
  gone.how.clear();
  attempts_.OnFailed(gone);
  EXPECT_EQ(attempts_.why(),
            absl::FailedPreconditionError("its pod mnist-export-7 is gone with its node"));
}

}  // namespace
}  // namespace adamant::kube
