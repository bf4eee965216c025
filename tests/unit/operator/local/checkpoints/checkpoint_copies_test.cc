#include "operator/local/checkpoints/checkpoint_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "proto/adamant/v1/job.pb.h"
#include "tests/unit/operator/local/checkpoints/saved_run.h"

namespace adamant::local {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckpointCopiesTest : public testing::Test {
 protected:
  std::optional<CheckpointCopies::Result> Copy(CheckpointCopies& copies) {
    copies.Begin(copies.TakeDue(), run_.entries);
    copies.Wait();
    return copies.TakeResult();
  }

  [[nodiscard]] bool HasCopy(std::uint64_t checkpoint) const {
    return std::filesystem::exists(run_.paths.copy_of(checkpoint) / "checkpoint.json");
  }

  SavedRun run_;
  const std::unique_ptr<v1::TrainingJob> job_ =
      SavedRun::Job("  output: {storage: {}, checkpoints: {every: 2, keep: 2}}\n");
};

TEST_F(CheckpointCopiesTest, OfSoManyCheckpointsOneIsCopied) {
  CheckpointCopies copies(*job_, run_.paths, 2);
  copies.OnCheckpoint(2);  // it was there before
  copies.OnCheckpoint(3);
  EXPECT_FALSE(copies.IsDue());
  copies.OnCheckpoint(3);  // the job has gone back to it
  EXPECT_FALSE(copies.IsDue());
  copies.OnCheckpoint(4);
  ASSERT_TRUE(copies.IsDue());
  const auto result = Copy(copies);
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->status.ok()) << result->status;
  EXPECT_EQ(result->checkpoint, 4u);
  EXPECT_TRUE(HasCopy(4));
  EXPECT_FALSE(copies.IsDue());
  EXPECT_FALSE(copies.TakeResult().has_value());
  EXPECT_EQ(copies.NoteOf(*result, 1).kind, controller::Note::Kind::kCheckpoint);
}

TEST_F(CheckpointCopiesTest, OfThoseThatAreDueWhileAnotherIsCopiedTheNewestIsTheNext) {
  CheckpointCopies copies(*job_, run_.paths, 0);
  for (const std::uint64_t checkpoint : {2, 4, 6}) {
    copies.OnCheckpoint(checkpoint - 1);
    copies.OnCheckpoint(checkpoint);
    ASSERT_TRUE(copies.IsDue());
    copies.Begin(copies.TakeDue(), run_.entries);
  }
  EXPECT_THAT(copies.needed(), ElementsAre(2u, 6u));
  copies.Wait();
  EXPECT_EQ(copies.TakeResult()->checkpoint, 2u);
  EXPECT_THAT(copies.needed(), ElementsAre(6u));
  copies.Wait();
  EXPECT_TRUE(copies.TakeResult()->status.ok());
  EXPECT_THAT(copies.needed(), IsEmpty());
  EXPECT_TRUE(HasCopy(2));
  EXPECT_FALSE(HasCopy(4));
  EXPECT_TRUE(HasCopy(6));
}

TEST_F(CheckpointCopiesTest, WhatIsStoppedIsNoAlarmAndNothingIsNext) {
  CheckpointCopies copies(*job_, run_.paths, 0);
  copies.Begin(2, run_.entries);
  copies.Begin(4, run_.entries);
  copies.Stop();
  copies.Wait();
  const auto result = copies.TakeResult();
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(copies.NoteOf(*result, 1).kind, controller::Note::Kind::kCheckpoint);
  EXPECT_THAT(copies.needed(), IsEmpty());
  EXPECT_FALSE(HasCopy(4));
}

TEST_F(CheckpointCopiesTest, TheNewestAreKept) {
  CheckpointCopies copies(*job_, run_.paths, 0);
  std::filesystem::create_directories(TemporaryOf(run_.paths.copy_of(1)));
  std::filesystem::create_directories(TemporaryOf(run_.paths.copy_of(8)));  // begun, and killed
  const std::filesystem::path somebodys = run_.paths.checkpoints() / "somebody's.tmp";
  std::filesystem::create_directories(somebodys);
  for (const std::uint64_t checkpoint : {8, 9, 10}) {
    copies.Begin(checkpoint, run_.entries);
    copies.Wait();
    ASSERT_TRUE(copies.TakeResult()->status.ok());
  }
  EXPECT_FALSE(HasCopy(8));
  EXPECT_TRUE(HasCopy(9));
  EXPECT_TRUE(HasCopy(10));
  EXPECT_FALSE(std::filesystem::exists(TemporaryOf(run_.paths.copy_of(1))));
  EXPECT_TRUE(std::filesystem::exists(somebodys));
}

TEST_F(CheckpointCopiesTest, OneThatFailsIsAnAlarmAndTheNextIsTried) {
  CheckpointCopies copies(*job_, run_.paths, 0);
  std::filesystem::create_directories(run_.paths.copy_of(2) / "somebody's");
  copies.OnCheckpoint(1);
  copies.OnCheckpoint(2);
  const auto failed = Copy(copies);
  ASSERT_TRUE(failed.has_value());
  const controller::Note note = copies.NoteOf(*failed, 3);
  EXPECT_EQ(note.kind, controller::Note::Kind::kAlarm);
  EXPECT_EQ(note.epoch, 3u);
  EXPECT_THAT(note.text, HasSubstr("training goes on"));
  copies.OnCheckpoint(3);
  copies.OnCheckpoint(4);
  EXPECT_TRUE(Copy(copies)->status.ok());
}

}  // namespace
}  // namespace adamant::local
