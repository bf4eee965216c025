#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/harness.h"

// What the next controller of a job makes of what happened before and between.
namespace adamant::controller {
namespace {

using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class TakeoverTest : public testing::Test {
 protected:
  TakeoverTest() {
    job_.Begin();
    job_.JoinAll();
  }

  /// All processes that there should be, and `more`, are known to the next controller.
  Harness::Actions TakeOver(const std::vector<StartProcess>& more = {}) {
    std::vector<StartProcess> known = job_.controller().Wanted();
    known.insert(known.end(), more.begin(), more.end());
    return job_.RestartController({.running = known});
  }

  Harness job_;
};

TEST_F(TakeoverTest, ALossThatNobodySawIsCountedByTheNextController) {
  EXPECT_THAT(Pick<StartProcess>(TakeOver()), IsEmpty());
  job_.Exit(kWorker0);
  EXPECT_EQ(job_.state().restarts, 1U);
}

TEST_F(TakeoverTest, ALossThatWasCountedIsNotCountedAgain) {
  const StartProcess dead{.id = kWorker0, .generation = job_.GenerationOf(kWorker0)};
  job_.Exit(kWorker0);
  ASSERT_EQ(job_.state().restarts, 1U);
  EXPECT_THAT(Pick<StartProcess>(TakeOver({dead})), IsEmpty());
  EXPECT_EQ(job_.state().restarts, 1U);
  job_.Exit(kWorker0);  // its pod is still there, and says so
  EXPECT_EQ(job_.state().restarts, 1U);
  EXPECT_EQ(job_.GenerationOf(kWorker0), dead.generation);
  const auto started = Pick<StartProcess>(job_.Pass(std::chrono::seconds(2)));
  ASSERT_THAT(started, SizeIs(1));
  EXPECT_EQ(started.front().generation, dead.generation + 1);
}

TEST_F(TakeoverTest, AJobThatHasFailedStaysSoUnlessItResumes) {
  job_.Handle(BodyFailed{"the end"});
  ASSERT_EQ(job_.state().phase, Phase::kFailed);
  const auto term = job_.state().term;
  EXPECT_THAT(Pick<StartProcess>(job_.RestartController({.resumes = false})), IsEmpty());
  EXPECT_EQ(job_.state().phase, Phase::kFailed);
  EXPECT_EQ(job_.state().term, term);
  EXPECT_THAT(job_.controller().Wanted(), IsEmpty());
  EXPECT_THAT(Pick<StartProcess>(job_.RestartController()), Not(IsEmpty()));
  EXPECT_EQ(job_.state().phase, Phase::kStarting);
}

}  // namespace
}  // namespace adamant::controller
