#include "operator/local/checkpoints/start_from.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "operator/core/job/start_state.h"
#include "operator/local/checkpoints/given_weights.h"
#include "operator/local/model/model_file.h"
#include "operator/local/state/kv_state_store.h"
#include "services/common/base/system/files.h"
#include "services/common/checkpoint/snapshot_store.h"
#include "services/common/storage/memory_store.h"
#include "services/common/storage/segments/segment_store.h"
#include "tests/unit/operator/local/checkpoints/saved_run.h"

namespace adamant::local {
namespace {

using testing::Each;
using testing::HasSubstr;

class StartFromTest : public testing::Test {
 protected:
  StartFromTest() {
    EXPECT_TRUE(run_.Save(run_.saved).ok());
    std::filesystem::create_directories(next_.data());
  }

  [[nodiscard]] std::string From(const std::string& what, const std::filesystem::path& path) const {
    return "  startFrom: {" + what + ": {path: " + path.string() + "}}\n";
  }

  [[nodiscard]] std::unique_ptr<v1::TrainingJob> GoesOn(int hidden = 12, int batch = 32) const {
    return SavedRun::Job(From("checkpoint", run_.saved), hidden, batch);
  }

  controller::JobState Enter(const v1::TrainingJob& job) {
    const absl::Status entered = EnterStart(job, next_, state_);
    EXPECT_TRUE(entered.ok()) << entered;
    const auto stored = state_.Load();
    EXPECT_TRUE(stored.ok()) << stored.status();
    const auto found = stored->entries.find(controller::kStateKey);
    return found == stored->entries.end() ? controller::JobState()
                                          : controller::DecodeState(found->second).value();
  }

  // A shard as the next run's parameter server finds it.
  [[nodiscard]] checkpoint::ShardContent ShardOf(const controller::JobState& state,
                                                 const Shard& shard) const {
    const std::uint32_t slot = state.checkpoint.buckets[shard.bucket].slot;
    const auto store = storage::SegmentStore::Open(next_.shards_of(slot)).value();
    const checkpoint::SnapshotStore snapshots(state.job_uid, *store);
    const auto about = snapshots.Find(state.checkpoint.snapshot, shard.bucket).value();
    EXPECT_TRUE(about.has_value());
    EXPECT_EQ(about->checksum, state.checkpoint.buckets[shard.bucket].checksum);
    return snapshots
        .LoadShard(
            state.checkpoint.snapshot, shard.bucket, run_.model.IdentityOf(state.job_uid, shard))
        .value();
  }

  SavedRun run_;
  const RunPaths next_{run_.root / "next"};
  storage::MemoryStore store_;
  KvStateStore state_{store_, 1};
};

TEST_F(StartFromTest, AJobThatStartsFromNothingIsLeftAlone) {
  EXPECT_TRUE(CheckStart(*run_.job).ok());
  EXPECT_EQ(Enter(*run_.job).job_uid, 0u);
  EXPECT_FALSE(std::filesystem::exists(next_.store_of(0)));
}

TEST_F(StartFromTest, ACheckpointBecomesTheStoresAndTheStateOfANewJob) {
  const auto job = GoesOn();
  const absl::Status checked = CheckStart(*job);
  ASSERT_TRUE(checked.ok()) << checked;
  const controller::JobState state = Enter(*job);
  EXPECT_NE(state.job_uid, 0u);
  EXPECT_NE(state.job_uid, SavedRun::kUid);
  EXPECT_EQ(state.epoch, 3u);
  EXPECT_TRUE(state.recovery.going_back);
  EXPECT_FALSE(std::filesystem::exists(next_.start()));
  for (BucketId bucket = 0; bucket < run_.model.layout.buckets(); ++bucket) {
    const BucketContent expected = run_.ContentOf(bucket);
    const std::vector<Shard> shards = ShardsOfBucket(run_.model.layout, bucket);
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const checkpoint::ShardContent found = ShardOf(state, shards[i]);
      EXPECT_EQ(found.values, expected.shards[i].values);
      EXPECT_EQ(found.state, expected.shards[i].state);
    }
  }
  EXPECT_EQ(state_.Load()->entries.count("epoch/00000000000000000001"), 1u);
  EXPECT_TRUE(std::filesystem::exists(next_.started()));
}

TEST_F(StartFromTest, WhatWasInterruptedIsCompleted) {
  const auto job = GoesOn();
  const controller::JobState state = Enter(*job);
  std::filesystem::create_directories(next_.start());
  std::filesystem::rename(next_.store_of(1), next_.start() / "parameter-server-1");
  EXPECT_EQ(Enter(*job).job_uid, state.job_uid);
  EXPECT_TRUE(std::filesystem::exists(next_.shards_of(1)));
  EXPECT_FALSE(std::filesystem::exists(next_.start()));
}

TEST_F(StartFromTest, WhatWasBegunBeforeThereWasAStateIsMadeAnew) {
  std::filesystem::create_directories(next_.start() / "parameter-server-7");
  Enter(*GoesOn());
  EXPECT_FALSE(std::filesystem::exists(next_.store_of(7)));
  EXPECT_TRUE(std::filesystem::exists(next_.shards_of(0)));
}

TEST_F(StartFromTest, AnotherNetIsRefusedWithNamesAndShapes) {
  const absl::Status refused = CheckStart(*GoesOn(/*hidden=*/16));
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("spec.startFrom.checkpoint: "));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("fc1.weight is 12x784, the net needs 16x784"));
}

TEST_F(StartFromTest, OtherDataIsRefusedWithTheField) {
  const absl::Status refused = CheckStart(*GoesOn(/*hidden=*/12, /*batch=*/64));
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("spec.data.batchSize: 32 -> 64"));
}

TEST_F(StartFromTest, ADamagedFileIsRefused) {
  Damage(run_.saved / SavedBucketName(2));
  const absl::Status refused = CheckStart(*GoesOn());
  EXPECT_TRUE(absl::IsDataLoss(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("checksum"));
  EXPECT_FALSE(EnterStart(*GoesOn(), next_, state_).ok());
  EXPECT_EQ(state_.Load()->version, 0u);
}

TEST_F(StartFromTest, AFolderThatIsNoCheckpointIsNamed) {
  const auto job = SavedRun::Job(From("checkpoint", run_.root / "nothing"));
  const absl::Status refused = CheckStart(*job);
  EXPECT_TRUE(absl::IsNotFound(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("nothing is no checkpoint"));
}

class GivenWeightsTest : public StartFromTest {
 protected:
  // Of the checkpoint, end to end.
  [[nodiscard]] std::vector<float> Expected() const {
    std::vector<float> weights(run_.model.layout.elements());
    for (BucketId bucket = 0; bucket < run_.model.layout.buckets(); ++bucket) {
      const BucketContent content = run_.ContentOf(bucket);
      const std::vector<Shard> shards = ShardsOfBucket(run_.model.layout, bucket);
      for (std::size_t i = 0; i < shards.size(); ++i) {
        std::ranges::copy(
            content.shards[i].values,
            weights.begin() + static_cast<std::ptrdiff_t>(
                                  run_.model.layout.OffsetOf(shards[i].tensor) + shards[i].begin));
      }
    }
    return weights;
  }

  [[nodiscard]] std::filesystem::path Write(const std::string& name, ModelFormat format) const {
    return Write(name, format, Expected());
  }
  [[nodiscard]] std::filesystem::path Write(const std::string& name,
                                            ModelFormat format,
                                            const std::vector<float>& weights) const {
    const std::filesystem::path path = run_.root / name;
    EXPECT_TRUE(
        WriteModel({.path = path, .format = format}, *run_.job, run_.model.graph, weights, {})
            .ok());
    return path;
  }
};

TEST_F(GivenWeightsTest, TheyAreTheSameFromEachFormat) {
  for (const std::filesystem::path& path : {run_.saved,
                                            Write("model.safetensors", ModelFormat::kSafetensors),
                                            Write("model.onnx", ModelFormat::kOnnx)}) {
    const auto weights = ReadGivenWeights(path, run_.model.graph);
    ASSERT_TRUE(weights.ok()) << weights.status();
    EXPECT_EQ(*weights, Expected()) << path;
  }
}

TEST_F(GivenWeightsTest, WhatIsNotFiniteIsRefusedByName) {
  std::vector<float> weights = Expected();
  weights.back() = std::numeric_limits<float>::quiet_NaN();
  for (const std::filesystem::path& path :
       {Write("nan.safetensors", ModelFormat::kSafetensors, weights),
        Write("nan.onnx", ModelFormat::kOnnx, weights)}) {
    const absl::Status refused = ReadGivenWeights(path, run_.model.graph).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr(run_.model.graph.parameters.back().name + " has values that are not"));
  }
}

TEST_F(GivenWeightsTest, AnOnnxFileThatWasDamagedIsRefused) {
  const std::filesystem::path path = Write("model.onnx", ModelFormat::kOnnx);
  std::string bytes = ReadFile(path, 1 << 20).value();
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  const absl::Status refused = ReadGivenWeights(path, run_.model.graph).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
}

TEST_F(GivenWeightsTest, ThoseOfAnotherNetAreRefusedWithNamesAndShapes) {
  const std::filesystem::path path = Write("model.safetensors", ModelFormat::kSafetensors);
  const auto job = SavedRun::Job(From("weights", path), /*hidden=*/16);
  const absl::Status refused = CheckStart(*job);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("spec.startFrom.weights: "));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("fc1.weight is 12x784, the net needs 16x784"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("fc1.bias is 12, "));
}

TEST_F(GivenWeightsTest, ANewTrainingBeginsWithThemAndAnOptimiserAtRest) {
  const auto job =
      SavedRun::Job(From("weights", Write("model.onnx", ModelFormat::kOnnx)), 12, /*batch=*/64);
  const controller::JobState state = Enter(*job);
  EXPECT_EQ(state.epoch, 1u);
  EXPECT_EQ(state.checkpoint.snapshot, controller::kGivenWeights);
  const std::vector<float> expected = Expected();
  for (const Shard& shard : run_.model.layout.shards()) {
    const checkpoint::ShardContent found = ShardOf(state, shard);
    const auto begin =
        expected.begin() +
        static_cast<std::ptrdiff_t>(run_.model.layout.OffsetOf(shard.tensor) + shard.begin);
    EXPECT_TRUE(std::equal(found.values.begin(), found.values.end(), begin));
    EXPECT_EQ(found.version, 0u);
    EXPECT_THAT(found.state, Each(0.0F));
  }
}

}  // namespace
}  // namespace adamant::local
