#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "services/common/storage/memory_store.h"
#include "services/parameter_server/core/parameter_server.h"
#include "tests/fakes/fake_clock.h"

namespace adamant::parameter_server {

/// A parameter server over a store in memory, alone in its job, holding all buckets.
class ServerFixture : public ::testing::Test {
 protected:
  static constexpr Writer kWriter{.slot = 0, .incarnation = 3};

  /// One parameter of `elements` zeros, shaped [elements].
  static ServerOptions Flat(std::int64_t elements, const ParameterOptimiser& optimiser) {
    return {.job_uid = 7,
            .writers = 4,
            .seed = 5,
            .parameters = {{.name = "w", .layer = "l", .shape = {elements}}},
            .buckets = 2,
            .optimisers = {optimiser}};
  }

  static ParameterOptimiser OnWorker() { return {.location = OptimiserLocation::kWorker}; }

  /// A new process: `created` is what the map says.
  void Start(ServerOptions options, bool created) {
    const std::uint32_t buckets = options.buckets;
    server_ = std::make_unique<ParameterServer>(std::move(options), store_, clock_);
    map_.assign(buckets, {.epoch = 1, .primary = 0, .created = created});
    server_->SetMap(map_);
    ASSERT_TRUE(server_->Prepare().ok());
  }

  /// Creates the buckets, and lets the map say so.
  void Create(ServerOptions options) {
    Start(std::move(options), false);
    for (BucketRecord& record : map_) {
      record = {.epoch = 2, .primary = 0, .created = true};
    }
    server_->SetMap(map_);
  }

  ShardAck PushOne(ShardUpdate update, Writer writer = kWriter, std::uint64_t job_examples = 0) {
    update.bucket_epoch = map_[0].epoch;
    const auto acks =
        server_->Apply({.writer = writer, .updates = {update}, .job_examples = job_examples});
    EXPECT_EQ(acks.size(), 1u);
    return acks[0];
  }

  std::vector<float> Values(ShardId shard, std::uint64_t snapshot = 0) {
    const auto values = server_->Fetch(nullptr, std::vector<ShardId>{shard}, snapshot);
    EXPECT_TRUE(values.ok()) << values.status();
    EXPECT_EQ(values->at(0).outcome, FetchOutcome::kFound);
    return {values->at(0).values.begin(), values->at(0).values.end()};
  }

  storage::MemoryStore store_;
  FakeClock clock_;
  std::unique_ptr<ParameterServer> server_;
  std::vector<BucketRecord> map_;
};

}  // namespace adamant::parameter_server
