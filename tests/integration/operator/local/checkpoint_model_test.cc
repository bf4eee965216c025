#include "operator/local/model/checkpoint_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "operator/local/run_folder/checkpoint_file.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"
#include "services/common/job/optimiser_of.h"
#include "services/common/storage/segments/segment_store.h"
#include "services/parameter_server/core/shards/dirty_shards.h"
#include "services/parameter_server/core/shards/live_shard.h"
#include "services/parameter_server/core/storage/snapshots.h"

namespace adamant::local {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr char kJob[] = R"(
apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: example}
spec:
  model:
    network:
      input: [1, 28, 28]
      classes: 10
      layers:
        - {name: fc1, kind: FullyConnected, outputs: 10}
  data:
    train: {digits: {seed: 1, examples: 100}}
    validation: {digits: {seed: 2, examples: 100}}
  distribution:
    parameterServers: {count: 2, buckets: 3}
)";
constexpr std::uint64_t kUid = 77;
constexpr std::uint32_t kServers = 2;
constexpr std::uint32_t kBuckets = 3;

// The folder of a run whose two servers have stored snapshots.
class CheckpointModelTest : public testing::Test {
 protected:
  CheckpointModelTest() {
    std::filesystem::remove_all(paths_.root);
    EXPECT_TRUE(CreateRunFolder(paths_, "").ok());
    for (std::uint32_t slot = 0; slot < kServers; ++slot) {
      std::filesystem::create_directories(paths_.store_of(slot));
    }
  }
  ~CheckpointModelTest() override { std::filesystem::remove_all(paths_.root); }

  // Stores a model whose weights are all `value` and writes its manifest.
  void Store(std::uint64_t snapshot, float value) {
    CheckpointManifest manifest{.job_uid = kUid, .checkpoint = {.snapshot = snapshot, .epoch = 4}};
    manifest.checkpoint.buckets.resize(kBuckets);
    for (BucketId bucket = 0; bucket < kBuckets; ++bucket) {
      const std::uint32_t slot = bucket % kServers;
      const auto taken = TakeBucket(slot, bucket, snapshot, value);
      manifest.checkpoint.buckets[bucket] = {.slot = slot,
                                             .generation = taken.generation,
                                             .updates = taken.updates,
                                             .checksum = taken.checksum};
    }
    EXPECT_TRUE(WriteCheckpointManifest(paths_, manifest, /*keep=*/1).ok());
  }

  parameter_server::SnapshotBucket TakeBucket(std::uint32_t slot,
                                              BucketId bucket,
                                              std::uint64_t snapshot,
                                              float value) {
    auto store = storage::SegmentStore::Open(paths_.store_of(slot) / "shards");
    EXPECT_TRUE(store.ok()) << store.status();
    std::vector<parameter_server::LiveShardPtr> shards;
    for (const Shard& shard : layout_.shards()) {
      if (shard.bucket == bucket) {
        shards.push_back(MakeShard(shard, value));
      }
    }
    parameter_server::Snapshots snapshots(kUid, **store);
    const parameter_server::RecordMap records;
    const parameter_server::Snapshots::Item item{
        .about = {.bucket = bucket, .configuration_version = 1, .generation = 1, .updates = 9},
        .source = {.shards = shards, .records = records}};
    const auto taken = snapshots.Take(snapshot, {&item, 1});
    EXPECT_TRUE(taken.ok()) << taken.status();
    return taken->front();
  }

  parameter_server::LiveShardPtr MakeShard(const Shard& shard, float value) {
    parameter_server::ShardContent content;
    content.values.assign(shard.size(), value);
    const ParameterOptimiser& optimiser = optimisers_[shard.tensor];
    content.state.resize(optimiser.location == OptimiserLocation::kServer
                             ? shard.size() * StatePerWeight(optimiser.kind)
                             : 0);
    const parameter_server::ShardIdentity identity{.job_uid = kUid,
                                                   .shard = shard.id,
                                                   .values = content.values.size(),
                                                   .state = content.state.size()};
    return std::make_shared<parameter_server::LiveShard>(
        identity,
        parameter_server::ShardRule{.optimiser = &optimiser, .begin = shard.begin},
        std::move(content),
        dirty_);
  }

  const RunPaths paths_{std::filesystem::path(testing::TempDir()) /
                        testing::UnitTest::GetInstance()->current_test_info()->name()};
  const job::ParseResult parsed_ = job::ParseJob(kJob, "job.yaml");
  v1::TrainingJob counted_ = *parsed_.job;
  const model::Graph graph_ = model::BuildGraph(job::NetOf(*parsed_.job)).value();
  const ShardLayout layout_{graph_.parameters, kBuckets};
  const std::vector<ParameterOptimiser> optimisers_ = [this] {
    job::CountProgressInExamples(1, 0, counted_);
    return job::OptimisersOf(counted_, graph_.parameters).value();
  }();
  const SystemClock clock_;
  parameter_server::DirtyShards dirty_{{}, clock_, [] {}};
};

TEST_F(CheckpointModelTest, TheNewestCheckpointIsRead) {
  Store(1, 0.5F);
  Store(2, 0.75F);
  const auto model = ReadCheckpointModel(*parsed_.job, paths_);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->weights.size(), layout_.elements());
  EXPECT_THAT(model->weights, Each(0.75F));
  EXPECT_THAT(model->metadata, testing::Contains(testing::Pair("checkpoint", "2")));
}

TEST_F(CheckpointModelTest, ACheckpointThatIsNotWhatItsManifestSaysIsPassedOver) {
  Store(1, 0.5F);
  Store(2, 0.75F);
  auto manifest = ReadCheckpointManifests(paths_)->front();
  manifest.checkpoint.buckets[1].checksum ^= 1;
  ASSERT_TRUE(WriteCheckpointManifest(paths_, manifest, 1).ok());
  const auto model = ReadCheckpointModel(*parsed_.job, paths_);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->weights, Each(0.5F));
}

TEST_F(CheckpointModelTest, WithoutAValidOneTheNewestIsExplained) {
  Store(2, 0.75F);
  std::filesystem::remove_all(paths_.store_of(1));
  const absl::Status status = ReadCheckpointModel(*parsed_.job, paths_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("checkpoint 2 is not valid"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("adamant train --resume"));
}

TEST_F(CheckpointModelTest, AnOlderOneIsHadByItsNumber) {
  Store(1, 0.5F);
  Store(2, 0.75F);
  const auto model = ReadCheckpointModel(*parsed_.job, paths_, 1);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->weights, Each(0.5F));
  const absl::Status status = ReadCheckpointModel(*parsed_.job, paths_, 3).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no checkpoint 3; it has 2, 1"));
}

TEST_F(CheckpointModelTest, ARunThatAnotherProgramReadsIsLeftAlone) {
  Store(1, 0.5F);
  const auto lock = RunLock::Acquire(paths_, RunLock::Use::kRead);
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(ReadCheckpointModel(*parsed_.job, paths_).status().code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace adamant::local
