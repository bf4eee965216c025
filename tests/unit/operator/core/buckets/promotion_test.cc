#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/core/job/harness.h"

// What the next controller of a job makes of what happened before and between.
namespace adamant::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class PromotionTest : public testing::Test {
 protected:
  PromotionTest() {
    job_.Begin();
    job_.JoinAll();
  }

  /// All processes that there should be, and `more`, are known to the next controller.
  Harness::Actions Promote(const std::vector<StartProcess>& more = {}) {
    std::vector<StartProcess> known = job_.controller().Wanted();
    known.insert(known.end(), more.begin(), more.end());
    return job_.RestartController({.running = known});
  }

  Harness job_;
};

TEST_F(PromotionTest, ALossThatNobodySawIsCountedByTheNextController) {
  EXPECT_THAT(Pick<StartProcess>(Promote()), IsEmpty());
  job_.Exit(kWorker0);
  EXPECT_EQ(job_.state().restarts, 1U);
}

TEST_F(PromotionTest, ALossThatWasCountedIsNotCountedAgain) {
  const StartProcess dead{.id = kWorker0, .generation = job_.GenerationOf(kWorker0)};
  job_.Exit(kWorker0);
  ASSERT_EQ(job_.state().restarts, 1U);
  EXPECT_THAT(Pick<StartProcess>(Promote({dead})), IsEmpty());
  EXPECT_EQ(job_.state().restarts, 1U);
  job_.Exit(kWorker0);  // its pod is still there, and says so
  EXPECT_EQ(job_.state().restarts, 1U);
  EXPECT_EQ(job_.GenerationOf(kWorker0), dead.generation);
  const auto started = Pick<StartProcess>(job_.Pass(std::chrono::seconds(2)));
  ASSERT_THAT(started, SizeIs(1));
  EXPECT_EQ(started.front().generation, dead.generation + 1);
}

TEST_F(PromotionTest, ASilentProcessThatIsGoneIsCountedByTheNextController) {
  job_.Pass(SmallJob().silence_timeout, {kWorker0});
  ASSERT_EQ(job_.state().restarts, 0U) << "its end is not known yet";
  const std::uint64_t generation = job_.GenerationOf(kWorker0);
  EXPECT_THAT(Pick<StartProcess>(Promote()), ElementsAre(StartProcess{kWorker0, generation + 1}));
  EXPECT_EQ(job_.state().restarts, 1U);
  Promote();
  EXPECT_EQ(job_.state().restarts, 1U);
}

TEST_F(PromotionTest, ASilentProcessThatIsGoneSpendsTheLastOfTheBudget) {
  JobSettings settings = SmallJob();
  settings.restart_limit = 0;
  Harness job(settings);
  job.Begin();
  job.JoinAll();
  job.Pass(settings.silence_timeout, {kWorker0});
  ASSERT_EQ(job.state().phase, Phase::kRunning);
  job.RestartController({.running = job.controller().Wanted()});
  EXPECT_EQ(job.state().phase, Phase::kFailed);
  EXPECT_THAT(job.state().message, HasSubstr("worker-0 was silent and the restart budget"));
}

TEST_F(PromotionTest, WhatWasSilentBeforeTheEndCountsNoMoreInAJobThatResumes) {
  job_.Pass(SmallJob().silence_timeout, {kWorker0});
  job_.Handle(ReconcilerFailed{"the end"});
  job_.RestartController();
  EXPECT_EQ(job_.state().phase, Phase::kStarting);
  EXPECT_EQ(job_.state().restarts, 0U);
}

TEST_F(PromotionTest, AJobThatHasFailedStaysSoUnlessItResumes) {
  job_.Handle(ReconcilerFailed{"the end"});
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
