#include "operator/kube/api/api_pause.h"

#include <gtest/gtest.h>

#include <chrono>

namespace adamant::kube {
namespace {

using std::chrono::milliseconds;

constexpr Clock::TimePoint kStart{std::chrono::hours(1)};

TEST(ApiPauseTest, AtFirstAndAfterAnAnswerRequestsAreTried) {
  ApiPause pause;
  EXPECT_TRUE(pause.Check(kStart).ok());
  pause.Note(absl::OkStatus(), kStart);
  EXPECT_TRUE(pause.Check(kStart).ok());
  pause.Note(absl::AbortedError("conflict"), kStart);
  EXPECT_TRUE(pause.Check(kStart).ok());
}

TEST(ApiPauseTest, AnApiThatDoesNotAnswerIsLeftAloneForATimeThatDoublesUpToFiveSeconds) {
  ApiPause pause;
  Clock::TimePoint now = kStart;
  for (const int wait : {200, 400, 800, 1600, 3200, 5000, 5000}) {
    pause.Note(absl::DeadlineExceededError("silent"), now);
    EXPECT_TRUE(absl::IsDeadlineExceeded(pause.Check(now)));
    EXPECT_FALSE(pause.Check(now + milliseconds(wait - 1)).ok());
    now += milliseconds(wait);
    EXPECT_TRUE(pause.Check(now).ok()) << wait;
  }
}

TEST(ApiPauseTest, AnAnswerEndsTheDoubling) {
  ApiPause pause;
  pause.Note(absl::UnavailableError("refused"), kStart);
  pause.Note(absl::UnavailableError("refused"), kStart);
  pause.Note(absl::OkStatus(), kStart + milliseconds(500));
  pause.Note(absl::UnavailableError("refused"), kStart + milliseconds(500));
  EXPECT_TRUE(pause.Check(kStart + milliseconds(700)).ok());
}

}  // namespace
}  // namespace adamant::kube
