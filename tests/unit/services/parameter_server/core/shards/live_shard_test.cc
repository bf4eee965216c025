#include "services/parameter_server/core/shards/live_shard.h"

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <vector>

#include "services/common/base/rng.h"
#include "tests/fakes/fake_clock.h"

namespace adamant::parameter_server {
namespace {

constexpr std::size_t kElements = 20'000;  // more than two blocks, and not a multiple of one

class LiveShardTest : public ::testing::Test {
 protected:
  std::unique_ptr<LiveShard> Make(const ParameterOptimiser& optimiser, bool durable = false) {
    const std::size_t state = kElements * StatePerWeight(optimiser.kind);
    return std::make_unique<LiveShard>(
        ShardIdentity{.job_uid = 1, .shard = 0, .values = kElements, .state = state},
        ShardRule{.optimiser = &optimiser, .durable_at_once = durable},
        ShardContent{.values = std::vector<float>(kElements, 0.5f),
                     .state = std::vector<float>(state)},
        dirty_);
  }

  std::vector<float> Random() {
    std::vector<float> values(kElements);
    for (float& value : values) {
      value = static_cast<float>(rng_.Normal());
    }
    return values;
  }

  /// Queues the gradient of one entry; its answer appears in `acks_`.
  void Enqueue(LiveShard& shard,
               Sequence sequence,
               std::span<const float> values,
               std::uint32_t slot = 0,
               std::uint64_t fetched_version = 0) {
    auto entry = std::make_shared<Entry>();
    entry->lsn = ++lsn_;
    entry->updates.push_back({.writer = {.slot = slot, .incarnation = 1},
                              .sequence = sequence,
                              .kind = UpdateKind::kGradient,
                              .values = values,
                              .fetched_version = fetched_version});
    auto push = std::make_shared<PushState>(
        1, [this](const std::vector<ShardAck>& acks) { acks_.push_back(acks[0]); });
    const LoggedUpdate* const update = &entry->updates[0];
    shard.Enqueue({.entry = std::move(entry), .update = update, .push = std::move(push)});
  }

  static std::vector<std::uint32_t> Bits(LiveShard& shard) {
    const ShardValue value = shard.Read(nullptr);
    std::vector<std::uint32_t> bits;
    for (const float v : value.values) {
      bits.push_back(std::bit_cast<std::uint32_t>(v));
    }
    return bits;
  }

  FakeClock clock_;
  DirtyShards dirty_{{}, clock_, [] {}};
  Rng rng_{1};
  Lsn lsn_ = 0;
  std::vector<ShardAck> acks_;
};

TEST_F(LiveShardTest, FoldingChangesNoBits) {
  for (const OptimiserKind kind :
       {OptimiserKind::kSgd, OptimiserKind::kMomentum, OptimiserKind::kAdagrad}) {
    const ParameterOptimiser optimiser{
        .kind = kind, .rate = 0.01, .momentum = 0.9, .epsilon = 1e-6, .weight_decay = 0.1};
    const auto one_by_one = Make(optimiser);
    const auto folded = Make(optimiser);
    std::vector<std::vector<float>> gradients;
    for (int i = 0; i < 7; ++i) {
      gradients.push_back(Random());
    }
    for (std::uint64_t i = 0; i < gradients.size(); ++i) {
      Enqueue(*one_by_one, i + 1, gradients[i]);
      one_by_one->ApplyIfFree();
    }
    EXPECT_EQ(acks_.size(), 7u);
    for (std::uint64_t i = 0; i < gradients.size(); ++i) {
      Enqueue(*folded, i + 1, gradients[i]);
    }
    EXPECT_EQ(acks_.size(), 7u);
    folded->ApplyIfFree();
    EXPECT_EQ(acks_.size(), 14u);
    EXPECT_EQ(Bits(*folded), Bits(*one_by_one));
    acks_.clear();
  }
}

TEST_F(LiveShardTest, WhatACopyIncludesIsNotAppliedAgain) {
  const ParameterOptimiser optimiser{.rate = 1};
  const std::vector<float> gradient(kElements, 1);
  const auto original = Make(optimiser);
  Enqueue(*original, 1, gradient);
  Enqueue(*original, 2, gradient);
  std::string stored = original->Encode();
  SealShard(stored);
  auto content = DecodeContent(original->identity(), stored);
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->lsn, 2u);
  LiveShard copy(original->identity(), {.optimiser = &optimiser}, *std::move(content), dirty_);
  lsn_ = 0;
  for (const Sequence sequence : {1, 2, 3}) {
    Enqueue(copy, sequence, gradient);
  }
  EXPECT_EQ(copy.Read(nullptr).values[0], 0.5f - 3);
  EXPECT_EQ(copy.version(), 3u);
}

TEST_F(LiveShardTest, StalenessCountsTheUpdatesSinceTheFetch) {
  const ParameterOptimiser optimiser{.rate = 1};
  const auto shard = Make(optimiser);
  const std::vector<float> gradient(kElements);
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    Enqueue(*shard, 1, gradient, slot, slot == 3 ? 100 : 1);
  }
  shard->Drain();
  EXPECT_EQ(acks_[0].update_staleness, 0u);
  EXPECT_EQ(acks_[1].update_staleness, 0u);
  EXPECT_EQ(acks_[2].update_staleness, 1u);
  EXPECT_EQ(acks_[3].update_staleness, 0u);  // the bucket was rolled back below the fetch
}

TEST_F(LiveShardTest, AReadSaysWhichUpdatesOfTheAskerItIncludes) {
  const ParameterOptimiser optimiser{.rate = 1};
  const auto shard = Make(optimiser);
  const std::vector<float> gradient(kElements);
  Enqueue(*shard, 1, gradient, 2);
  const WorkerId writer{.slot = 2, .incarnation = 1};
  const WorkerId successor{.slot = 2, .incarnation = 2};
  EXPECT_EQ(shard->Read(&writer).included_sequence, 1u);
  EXPECT_EQ(shard->Read(&successor).included_sequence, 0u);
  EXPECT_EQ(shard->Read(nullptr).included_sequence, 0u);
  EXPECT_EQ(shard->Read(nullptr).version, 1u);
}

TEST_F(LiveShardTest, AFlushCountsTheUpdatesSinceTheLast) {
  const ParameterOptimiser optimiser{.rate = 1};
  const auto shard = Make(optimiser);
  const std::vector<float> gradient(kElements);
  std::uint64_t updates = 0;
  for (Sequence sequence = 1; sequence <= 3; ++sequence) {
    Enqueue(*shard, sequence, gradient);
  }
  shard->ApplyIfFree();
  EXPECT_EQ(dirty_.Take().size(), 1u);
  shard->EncodeForFlush(updates);
  EXPECT_EQ(updates, 3u);
  EXPECT_EQ(dirty_.Take().size(), 0u);
  Enqueue(*shard, 4, gradient);
  shard->ApplyIfFree();
  EXPECT_EQ(dirty_.Take().size(), 1u);
}

TEST_F(LiveShardTest, AnUpdateIsPersistedOnceItIsFlushedEverywhere) {
  const ParameterOptimiser optimiser{.rate = 1};
  const auto shard = Make(optimiser);
  const std::vector<float> gradient(kElements);
  const WorkerId writer{.slot = 0, .incarnation = 1};
  std::uint64_t updates = 0;
  Enqueue(*shard, 1, gradient);
  shard->EncodeForFlush(updates);
  EXPECT_EQ(shard->PersistedOf(writer), 0u);
  Enqueue(*shard, 2, gradient);
  shard->Drain();
  shard->Flushed();
  EXPECT_EQ(shard->PersistedOf(writer), 0u) << "here, not on all disks";
  shard->SetDurable(1);
  EXPECT_EQ(shard->PersistedOf(writer), 1u);
  EXPECT_EQ(acks_.back().persisted, 0u);
  Enqueue(*shard, 3, gradient);
  shard->Drain();
  EXPECT_EQ(acks_.back().persisted, 1u);
  const auto durable = Make(optimiser, true);
  Enqueue(*durable, 1, gradient);
  durable->Drain();
  EXPECT_EQ(acks_.back().persisted, 1u);
}

}  // namespace
}  // namespace adamant::parameter_server
