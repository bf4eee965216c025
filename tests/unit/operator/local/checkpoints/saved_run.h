#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/control/job_settings.h"
#include "operator/core/job/start_state.h"
#include "operator/core/state/actions.h"
#include "operator/local/checkpoints/save_checkpoint.h"
#include "operator/local/checkpoints/start_stores.h"
#include "operator/local/model/trained_model.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/system/files.h"
#include "services/common/job/job.h"

namespace adamant::local {

/// The folder of a run that has one checkpoint, of which the tests know all.
class SavedRun {
 public:
  static constexpr std::uint64_t kUid = 0xfedcba9876543210;
  static constexpr std::uint64_t kSnapshot = 5;

  SavedRun()
      : root(std::filesystem::path(testing::TempDir()) /
             (std::string("saved_") +
              testing::UnitTest::GetInstance()->current_test_info()->test_suite_name() + "_" +
              testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(root);
    std::filesystem::create_directories(paths.data());
    std::filesystem::create_directories(paths.checkpoints());
    StartStores stores(paths.data(), kUid, model);
    std::vector<controller::CheckpointBucket> buckets;
    for (BucketId bucket = 0; bucket < model.layout.buckets(); ++bucket) {
      buckets.push_back(stores.Put(kSnapshot, bucket.value() % 2, ContentOf(bucket)).value());
    }
    entries[controller::kStateKey] = controller::Encode(StateWith(std::move(buckets)));
    entries["epoch/00000000000000000001"] = controller::Encode(controller::EpochResult{.epoch = 1});
  }
  ~SavedRun() { std::filesystem::remove_all(root); }
  SavedRun(const SavedRun&) = delete;
  SavedRun& operator=(const SavedRun&) = delete;

  /// The manifest, with `spec` as more of it.
  static std::unique_ptr<v1::TrainingJob> Job(const std::string& spec = "",
                                              int hidden = 12,
                                              int batch = 32) {
    const std::string text = R"(apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: first}
spec:
  model:
    network:
      input: [1, 28, 28]
      classes: 10
      layers:
        - {name: fc1, kind: FullyConnected, outputs: )" +
                             std::to_string(hidden) + R"(}
        - {name: fc2, kind: FullyConnected, outputs: 10}
  data:
    train: {digits: {seed: 1, examples: 1000}}
    validation: {digits: {seed: 2, examples: 100}}
    batchSize: )" + std::to_string(batch) +
                             R"(
  optimiser: {kind: Momentum, location: Server}
  distribution: {parameterServers: {count: 2, buckets: 4}}
)" + spec;
    job::ParseResult parsed = job::ParseJob(text, "/job.yaml");
    EXPECT_NE(parsed.job, nullptr)
        << (parsed.problems.empty() ? "" : job::Format(parsed.problems.front()));
    return std::move(parsed.job);
  }

  /// A bucket as the checkpoint has it.
  [[nodiscard]] BucketContent ContentOf(BucketId bucket) const {
    BucketContent content{
        .about = {.bucket = bucket, .configuration_version = 3, .generation = 2, .updates = 7},
        .shards = {},
        .records = {{"part/" + std::to_string(bucket.value()), {.version = 4, .value = "done"}}}};
    for (const Shard& shard : ShardsOfBucket(model.layout, bucket)) {
      checkpoint::ShardContent& added = content.shards.emplace_back();
      added.generation = 2;
      added.lsn = 9;
      added.version = 7;
      added.sequences = checkpoint::SequenceTable({{.slot = 0, .incarnation = 1, .sequence = 7}});
      for (std::uint64_t i = 0; i < shard.size(); ++i) {
        added.values.push_back(static_cast<float>(shard.id.value()) + static_cast<float>(i) / 1024);
        added.state.push_back(-added.values.back());
      }
    }
    return content;
  }

  [[nodiscard]] absl::Status Save(const std::filesystem::path& folder) const {
    return SaveCheckpoint({.job = *job, .paths = paths, .entries = entries}, folder);
  }

  const std::filesystem::path root;
  const RunPaths paths{root / "run"};
  const std::filesystem::path saved = root / "saved";
  const std::unique_ptr<v1::TrainingJob> job = Job();
  const TrainedModel model = TrainedModelOf(*job).value();
  std::map<std::string, std::string> entries;  // of the controller

 private:
  // After the end of the second epoch.
  [[nodiscard]] controller::JobState StateWith(
      std::vector<controller::CheckpointBucket> buckets) const {
    controller::JobState state =
        controller::StateWithWeights(control::SettingsOf(*job), kUid, std::move(buckets));
    state.phase = controller::Phase::kRunning;
    state.epoch = 3;
    state.last_snapshot = kSnapshot;
    state.checkpoint.snapshot = kSnapshot;
    state.checkpoint.epoch = 2;
    state.recovery.first = {};
    state.recovery.newest = {.checkpoint = state.checkpoint, .epoch = 3};
    state.recovery.healthy = state.recovery.newest;
    state.recovery.going_back = false;
    return state;
  }
};

/// Changes one byte in the middle of a file.
inline void Damage(const std::filesystem::path& file) {
  std::string content = ReadFile(file, std::uint64_t{1} << 30).value();
  content[content.size() / 2] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(file, content).ok());
}

}  // namespace adamant::local
