#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "services/common/base/ids.h"
#include "tests/unit/services/parameter_server/core/serving/server_rig.h"

namespace adamant::parameter_server {

/// A parameter server over a store in memory, alone in its job, primary of all buckets.
class ServerFixture : public ::testing::Test {
 protected:
  static constexpr WorkerId kWriter{.slot = 0, .incarnation = 3};

  /// One parameter of `elements` zeros, shaped [elements].
  static ParameterServerOptions Flat(std::int64_t elements, const ParameterOptimiser& optimiser) {
    return {.job_uid = 7,
            .writers = 4,
            .seed = 5,
            .parameters = {{.name = "w", .layer = "l", .shape = {elements}}},
            .buckets = 2,
            .optimisers = {optimiser}};
  }

  static ParameterOptimiser OnWorker() { return {.location = OptimiserLocation::kWorker}; }

  /// A process that creates the buckets.
  void Create(ParameterServerOptions options) {
    rig_->Start(0, std::move(options));
    rig_->AssignAll(0);
  }

  /// Kills the process; another finds what is on the disk.
  void Restart(ParameterServerOptions options) {
    rig_->Kill(0);
    rig_->Start(0, std::move(options));
    rig_->RestoreAll(0);
  }

  ParameterServer& server() { return rig_->server(0); }

  std::vector<ShardAck> PushAll(Push push) {
    for (ShardUpdate& update : push.updates) {
      update.configuration_version = rig_->map[0].version;
    }
    const auto acks = rig_->Push(0, push);
    EXPECT_TRUE(acks.has_value());
    return acks.value_or(std::vector<ShardAck>(push.updates.size()));
  }

  ShardAck PushOne(ShardUpdate update, WorkerId writer = kWriter, std::uint64_t job_examples = 0) {
    return PushAll(
        {.writer = writer, .updates = {update}, .terms = {.job_examples = job_examples}})[0];
  }

  std::vector<float> Values(ShardId shard, std::uint64_t snapshot = 0) {
    const auto values = server().Fetch(nullptr, std::vector<ShardId>{shard}, snapshot);
    EXPECT_TRUE(values.ok()) << values.status();
    EXPECT_EQ(values->at(0).outcome, FetchOutcome::kFound);
    return {values->at(0).values.begin(), values->at(0).values.end()};
  }

  std::optional<ServerRig> rig_{std::in_place, 1};
};

}  // namespace adamant::parameter_server
