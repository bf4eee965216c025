#include "operator/core/processes/silence_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/processes/small_table.h"

namespace adamant::controller {
namespace {

class SilenceWatchTest : public SmallTable {
 protected:
  SilenceWatchTest() { Join(kWorker0, "a"); }

  SilenceWatch silence_{settings_, outbox_, processes_};
};

TEST_F(SilenceWatchTest, WhoIsHeardIsReadyAndSilentOnlyAfterATime) {
  silence_.OnLoading(At(kWorker0), {.what = "reads"}, now_);
  EXPECT_EQ(At(kWorker0).loading, "reads");
  EXPECT_EQ(silence_.NextTimer(), now_ + SilenceWatch::kLoadTimeout);
  silence_.OnHeartbeat(At(kWorker0), now_);
  EXPECT_TRUE(processes_.IsStarted(kWorker0));
  EXPECT_EQ(At(kWorker0).loading, "");
  EXPECT_EQ(silence_.NextTimer(), now_ + settings_.silence_timeout);
  EXPECT_EQ(silence_.FindSilent(now_ + settings_.silence_timeout - std::chrono::milliseconds(1)),
            nullptr);
  EXPECT_EQ(silence_.FindSilent(now_ + settings_.silence_timeout), &At(kWorker0));
}

TEST_F(SilenceWatchTest, ThatALoadFailsAndThatItGoesOnIsToldOnce) {
  Take();
  silence_.OnLoading(At(kWorker0), {.what = "40 %"}, now_);
  EXPECT_THAT(Pick<Note>(Take()), testing::IsEmpty());
  for (const bool is_news : {true, false}) {
    silence_.OnLoading(At(kWorker0), {.what = "no host", .fails = true}, now_);
    const std::vector<Note> notes = Pick<Note>(Take());
    ASSERT_EQ(notes.size(), is_news ? 1u : 0u);
    if (is_news) {
      EXPECT_EQ(notes[0].kind, Note::Kind::kAlarm);
      EXPECT_EQ(notes[0].text, "worker-0: no host");
    }
  }
  silence_.OnLoading(At(kWorker0), {.what = "50 %"}, now_);
  const std::vector<Note> over = Pick<Note>(Take());
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].text, "worker-0 comes on again: 50 %");
}

TEST_F(SilenceWatchTest, WhoIsToLeaveHasNoMoreTimeForBeingHeard) {
  At(kWorker0).leaving = true;
  At(kWorker0).deadline = now_;
  silence_.OnHeartbeat(At(kWorker0), now_);
  EXPECT_EQ(At(kWorker0).deadline, now_);
}

TEST_F(SilenceWatchTest, NobodyIsWaitedForWhoseProcessIsGone) {
  At(kWorker0).WaitUntil(now_);
  EXPECT_EQ(silence_.FindSilent(now_), nullptr);
  EXPECT_EQ(silence_.NextTimer(), std::nullopt);
  At(kWorker0).liveness = Liveness::kStarting;
  EXPECT_EQ(silence_.FindSilent(now_), &At(kWorker0));
}

TEST_F(SilenceWatchTest, OnceTheControllerWasHeldUpAllHaveTimeAndNobodyLess) {
  Join(kWorker1, "b");
  At(kWorker0).deadline = now_;
  silence_.GrantTime(now_);
  EXPECT_EQ(At(kWorker0).deadline, now_ + settings_.silence_timeout);
  EXPECT_EQ(At(kWorker1).deadline, now_ + SilenceWatch::kLoadTimeout);
}

}  // namespace
}  // namespace adamant::controller
