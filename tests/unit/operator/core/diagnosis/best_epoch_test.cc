#include "operator/core/diagnosis/best_epoch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/diagnosis/reservations.h"
#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::string Told(double best, double last, std::uint64_t validated) {
  JobState state;
  EpochResult row{.epoch = 2, .validated = validated, .top1 = best};
  NoteResult(state, row);
  row.epoch = 5;
  row.top1 = last;
  NoteResult(state, row);
  const std::string worse = WorseThanBest(state, row);
  return worse.empty() ? "" : worse + TryToEndAtBest({});
}

TEST(BestEpochTest, ALastOneThatIsClearlyWorseIsTold) {
  EXPECT_EQ(Told(0.8, 0.26, 10'000),
            "epoch 2 was the best, with top-1 80.00%; the model that is written is that of the "
            "last, epoch 5, with 26.00%: try a lower spec.optimiser.rate, or one that falls "
            "(spec.optimiser.schedule)");
}

TEST(BestEpochTest, InAJobOfFewBatchesMoreOfThemComeFirst) {
  EXPECT_THAT(
      TryToEndAtBest({.length = {.batches = 57, .batch_size = 320, .threads = 4}}),
      StartsWith(": try more epochs (spec.runPolicy.epochs), smaller batches "
                 "(spec.data.batchSize), fewer workers, or a lower spec.optimiser.rate, or one"));
}

TEST(BestEpochTest, WhereLittleWasLearnedTheRateIsNotToldToBeLowerAndHigher) {
  JobSettings settings;
  settings.chance_loss = 2.3;
  JobState state;
  state.recovery.first_loss = 2.3;
  state.best_epoch = 1;
  state.best_accuracy = 0.3;
  state.row = {.epoch = 3, .trained = 60'000, .training_loss = 2.29, .validated = 2'000};
  state.row.top1 = 0.2;
  EXPECT_THAT(ReservationsOf(settings, state),
              AllOf(StartsWith("epoch 1 was the best, with top-1 30.00%; the model that is written "
                               "is that of the last, epoch 3, with 20.00%; the model has learned "
                               "little"),
                    HasSubstr("; try a higher spec.optimiser.rate"),
                    Not(HasSubstr("try a lower"))));
  EXPECT_EQ(EndOfSuccess(settings, state), EndKind::kPoor);
  state.row.training_loss = 0.5;
  EXPECT_EQ(EndOfSuccess(settings, state), EndKind::kWorse);
  EXPECT_THAT(ReservationsOf(settings, state), HasSubstr("with 20.00%: try a lower"));
}

TEST(BestEpochTest, ADifferenceThatChanceMakesIsNot) {
  EXPECT_EQ(Told(0.26, 0.8, 10'000), "");
  EXPECT_EQ(Told(0.8, 0.725, 500), "");  // one deviation is 2.7 points
  EXPECT_NE(Told(0.8, 0.715, 500), "");
  EXPECT_EQ(Told(0.98, 0.97, 60'000), "") << "a point is nothing to worry about";
  EXPECT_NE(Told(0.98, 0.95, 60'000), "");
  EXPECT_EQ(Told(1, 0, 99), "") << "too few examples";
  EXPECT_EQ(Told(0, 0, 0), "");
}

class BestEpochOfAJobTest : public testing::Test {
 protected:
  explicit BestEpochOfAJobTest(OnDivergence::Action action = OnDivergence::Action::kContinue)
      : job_(Settings(action)) {
    job_.Begin();
    job_.JoinAll();
    job_.StoreSnapshot(kServer0, 1);
    job_.StoreSnapshot(kServer1, 1);
  }

  static JobSettings Settings(OnDivergence::Action action) {
    JobSettings settings = SmallJob();
    settings.epochs = 3;
    settings.on_divergence = {.action = action};
    return settings;
  }

  std::vector<std::string> Alarms(const Harness::Actions& actions) {
    std::vector<std::string> texts;
    for (const Note& note : Pick<Note>(actions)) {
      if (note.kind == Note::Kind::kAlarm) {
        texts.push_back(note.text);
      }
    }
    return texts;
  }

  Harness job_;
};

TEST_F(BestEpochOfAJobTest, TheEndTellsOfABetterOneAlsoAfterAnotherController) {
  EXPECT_THAT(Alarms(job_.TrainAndEvaluate(30)), IsEmpty());
  EXPECT_THAT(Alarms(job_.TrainAndEvaluate(90)), IsEmpty());
  job_.RestartController();
  job_.JoinAll("-again");
  EXPECT_THAT(Alarms(job_.TrainAndEvaluate(26)),
              ElementsAre(HasSubstr("epoch 2 was the best, with top-1 90.00%")));
}

class BestEpochOfAnAttemptTest : public BestEpochOfAJobTest {
 protected:
  BestEpochOfAnAttemptTest() : BestEpochOfAJobTest(OnDivergence::Action::kRecover) {}
};

TEST_F(BestEpochOfAnAttemptTest, OneThatIsUndoneDoesNotCount) {
  job_.TrainAndEvaluate(90);
  ASSERT_EQ(job_.state().best_epoch, 1u);
  for (int times = 0; times < 2; ++times) {  // to the model of epoch 1, and to the first weights
    job_.Tell(kWorker0, Failure{.message = "NaN", .fatal = true, .diverged = true});
    EXPECT_EQ(job_.state().best_epoch, times == 0 ? 1u : 0u);
    EXPECT_EQ(job_.state().best_accuracy, times == 0 ? 0.9 : 0);
    for (const SlotId id : {kData0, kData1, kServer0, kServer1, kWorker0, kWorker1}) {
      job_.Exit(id);
    }
    job_.JoinAll("-" + std::to_string(times));
  }
}

}  // namespace
}  // namespace adamant::controller
