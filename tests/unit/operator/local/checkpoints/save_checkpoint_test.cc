#include "operator/local/checkpoints/save_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "operator/local/checkpoints/checkpoint_folder.h"
#include "operator/local/checkpoints/saved_buckets.h"
#include "services/common/checkpoint/snapshot_format.h"
#include "services/common/storage/segments/segment_store.h"
#include "tests/unit/operator/local/checkpoints/saved_run.h"
#include "tests/unit/operator/local/full_disk.h"

namespace adamant::local {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

void ExpectSame(const BucketContent& found, const BucketContent& expected) {
  EXPECT_EQ(found.about.generation, expected.about.generation);
  EXPECT_EQ(found.about.updates, expected.about.updates);
  ASSERT_THAT(found.shards, SizeIs(expected.shards.size()));
  for (std::size_t i = 0; i < found.shards.size(); ++i) {
    EXPECT_EQ(found.shards[i].values, expected.shards[i].values);
    EXPECT_EQ(found.shards[i].state, expected.shards[i].state);
    EXPECT_EQ(found.shards[i].version, expected.shards[i].version);
    EXPECT_THAT(found.shards[i].sequences.entries(), SizeIs(1));
  }
  ASSERT_THAT(found.records, SizeIs(expected.records.size()));
  EXPECT_EQ(found.records.begin()->first, expected.records.begin()->first);
  EXPECT_EQ(found.records.begin()->second.value, expected.records.begin()->second.value);
}

class SaveCheckpointTest : public testing::Test {
 protected:
  SavedRun run_;
};

TEST_F(SaveCheckpointTest, ItComesBackWhole) {
  const absl::Status saved = run_.Save(run_.saved);
  ASSERT_TRUE(saved.ok()) << saved;
  const auto about = ReadSavedCheckpoint(run_.saved);
  ASSERT_TRUE(about.ok()) << about.status();
  EXPECT_EQ(about->job, "first");
  EXPECT_EQ(about->job_uid, SavedRun::kUid);
  EXPECT_EQ(about->snapshot, SavedRun::kSnapshot);
  EXPECT_EQ(about->epoch, 2u);
  ASSERT_THAT(about->tensors, SizeIs(4));
  EXPECT_EQ(about->tensors[0], (SavedTensor{.name = "fc1.weight", .shape = {12, 784}}));
  for (BucketId bucket = 0; bucket < run_.model.layout.buckets(); ++bucket) {
    const auto content = ReadSavedBucket(run_.saved, *about, run_.model, bucket);
    ASSERT_TRUE(content.ok()) << content.status();
    ExpectSame(*content, run_.ContentOf(bucket));
  }
  const auto entries = ReadSavedRecords(run_.saved, *about, kSavedState);
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(*entries, run_.entries);
}

TEST_F(SaveCheckpointTest, AFileThatIsDamagedOrMissingIsNamed) {
  ASSERT_TRUE(run_.Save(run_.saved).ok());
  const auto about = ReadSavedCheckpoint(run_.saved);
  ASSERT_TRUE(about.ok()) << about.status();
  const std::string name = SavedBucketName(1);
  Damage(run_.saved / name);
  const absl::Status damaged = ReadSavedBucket(run_.saved, *about, run_.model, 1).status();
  EXPECT_TRUE(absl::IsDataLoss(damaged));
  EXPECT_THAT(std::string(damaged.message()), HasSubstr(name + " is damaged"));
  std::filesystem::remove(run_.saved / name);
  const absl::Status missing = ReadSavedBucket(run_.saved, *about, run_.model, 1).status();
  EXPECT_TRUE(absl::IsDataLoss(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr(name + " is missing"));
  Damage(run_.saved / "checkpoint.json");
  EXPECT_TRUE(absl::IsDataLoss(ReadSavedCheckpoint(run_.saved).status()));
}

TEST_F(SaveCheckpointTest, WhatIsThereAlreadyIsNeverWrittenOver) {
  ASSERT_TRUE(run_.Save(run_.saved).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(run_.Save(run_.saved)));
  EXPECT_TRUE(ReadSavedCheckpoint(run_.saved).ok());
}

TEST_F(SaveCheckpointTest, ABucketThatTheDisksLackLeavesNothingBehind) {
  {
    const auto store = storage::SegmentStore::Open(run_.paths.shards_of(1)).value();
    ASSERT_TRUE(
        store
            ->Write(
                {{.key = checkpoint::MarkKey(SavedRun::kSnapshot, 1), .value = "", .erase = true}})
            .ok());
  }
  const absl::Status missing = run_.Save(run_.saved);
  EXPECT_TRUE(absl::IsDataLoss(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("bucket 1 of checkpoint 5 is missing"));
  EXPECT_FALSE(std::filesystem::exists(run_.saved));
  EXPECT_FALSE(std::filesystem::exists(TemporaryOf(run_.saved)));
}

TEST_F(SaveCheckpointTest, AFullDiskLeavesNothingBehind) {
  absl::Status full;
  {
    const FullDisk disk;
    full = run_.Save(run_.saved);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_FALSE(std::filesystem::exists(run_.saved));
  EXPECT_FALSE(std::filesystem::exists(TemporaryOf(run_.saved)));
  EXPECT_TRUE(run_.Save(run_.saved).ok());
}

TEST_F(SaveCheckpointTest, WhatHasTheTemporaryNameIsLeftAlone) {
  const std::filesystem::path another = TemporaryOf(run_.saved) / "of another";
  std::filesystem::create_directories(another);
  const absl::Status refused = run_.Save(run_.saved);
  EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("of one that is writing or was killed"));
  EXPECT_TRUE(std::filesystem::exists(another));
  EXPECT_FALSE(std::filesystem::exists(run_.saved));
}

TEST_F(SaveCheckpointTest, WithoutACheckpointThereIsNothingToSave) {
  run_.entries.clear();
  EXPECT_TRUE(absl::IsNotFound(run_.Save(run_.saved)));
}

}  // namespace
}  // namespace adamant::local
