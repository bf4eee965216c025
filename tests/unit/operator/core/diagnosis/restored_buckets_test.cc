#include "operator/core/diagnosis/restored_buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

namespace adamant::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class RestoredBucketsTest : public testing::Test {
 protected:
  RestoredBucketsTest() { state_.buckets.resize(3); }

  // What was told since the last call.
  std::vector<std::string> Told() {
    std::vector<std::string> texts;
    for (const Action& action : outbox_.Take(state_)) {
      if (const auto* note = std::get_if<Note>(&action)) {
        EXPECT_EQ(note->kind, Note::Kind::kRestored);
        texts.push_back(note->text);
      }
    }
    return texts;
  }

  static constexpr SlotId kServer{Role::kParameterServer, 1};

  JobSettings settings_{.logged = true};
  JobState state_;
  Outbox outbox_;
  RestoredBuckets restored_{settings_, state_, outbox_};
};

TEST_F(RestoredBucketsTest, TellsTogetherOfThoseThatLostNothing) {
  for (const BucketId bucket : {0U, 1U, 2U, 1U}) {
    restored_.Add(bucket, kServer, 0);
  }
  EXPECT_THAT(Told(), IsEmpty());
  restored_.TellTogether(false);
  EXPECT_THAT(Told(),
              ElementsAre("parameters were read back from disk (all 3 buckets), and no update is "
                          "known to be lost"));
  restored_.TellTogether(false);
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(RestoredBucketsTest, TellsAtOnceOfOneThatLostUpdates) {
  restored_.Add(2, kServer, 1);
  EXPECT_THAT(Told(),
              ElementsAre("bucket 2 restored from parameter-server-1: 1 update rolled back"));
  restored_.Add(0, kServer, 0);
  restored_.TellTogether(false);
  EXPECT_THAT(
      Told(),
      ElementsAre("parameters were read back from disk (2 of the 3 buckets), and 1 update of "
                  "1 bucket was rolled back"));
}

TEST_F(RestoredBucketsTest, TellsTogetherAlsoWhereAllLostUpdates) {
  settings_.logged = false;
  for (const BucketId bucket : {0U, 1U, 2U}) {
    restored_.Add(bucket, kServer, 10);
  }
  EXPECT_THAT(Told(), testing::SizeIs(3));
  restored_.TellTogether(false);
  EXPECT_THAT(
      Told(),
      ElementsAre("parameters were read back from disk (all 3 buckets) as they were flushed "
                  "last: 30 updates of 3 buckets were rolled back, as was heard; what was "
                  "applied after that, if anything, is missing and not all counted, unless a "
                  "worker that lives sends it again"));
}

TEST_F(RestoredBucketsTest, DoesNotDenyWhatWasLostBefore) {
  state_.updates_lost = 200;
  state_.unrecorded_losses = 30;
  restored_.Add(0, kServer, 0);
  restored_.TellTogether(false);
  EXPECT_THAT(
      Told(),
      ElementsAre("parameters were read back from disk (1 of the 3 buckets), and no more is "
                  "known to be lost than the 230 updates that had been counted"));
}

TEST_F(RestoredBucketsTest, CountsOnlyBucketsThatHoldParameters) {
  settings_.bucket_bytes = {0, 7, 0};
  restored_.Add(0, kServer, 0);
  restored_.TellTogether(true);
  EXPECT_THAT(Told(), IsEmpty());
  restored_.Add(1, kServer, 0);
  restored_.TellTogether(true);
  EXPECT_THAT(
      Told(),
      ElementsAre("the parameters are back (the 1 bucket that holds parameters, of 3 in all)"));
}

TEST_F(RestoredBucketsTest, SaysWhatNobodyHasCountedUnlessServersEndedInOrder) {
  constexpr char kEnd[] =
      ") as they were flushed last; what was applied after that, if anything, is missing and not "
      "all "
      "counted, unless a worker that lives sends it again";
  settings_.logged = false;
  restored_.Begin(true);
  restored_.Add(0, kServer, 0);
  restored_.TellTogether(false);
  EXPECT_THAT(Told(), ElementsAre(testing::Not(testing::EndsWith(kEnd))));
  restored_.OnJobBegun();
  restored_.Add(0, kServer, 0);
  restored_.TellTogether(false);
  EXPECT_THAT(Told(), ElementsAre(testing::EndsWith(kEnd)));
}

TEST_F(RestoredBucketsTest, ForgetsWhatWasNotTold) {
  restored_.Add(0, kServer, 0);
  restored_.Forget();
  restored_.TellTogether(false);
  EXPECT_THAT(Told(), IsEmpty());
}

}  // namespace
}  // namespace adamant::controller
