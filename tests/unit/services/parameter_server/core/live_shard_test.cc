#include "services/parameter_server/core/live_shard.h"

#include <gtest/gtest.h>

#include <bit>
#include <deque>

#include "services/common/base/rng.h"
#include "tests/fakes/fake_clock.h"

namespace adamant::parameter_server {
namespace {

constexpr std::size_t kElements = 20'000;  // more than two blocks, and not a multiple of one

class LiveShardTest : public ::testing::Test {
 protected:
  LiveShard Make(OptimiserKind kind) {
    const std::size_t state = kElements * StatePerWeight(kind);
    return {{.job_uid = 1, .shard = 0, .values = kElements, .state = state},
            {.values = std::vector<float>(kElements, 0.5f), .state = std::vector<float>(state)},
            dirty_};
  }

  std::vector<float> Random() {
    std::vector<float> values(kElements);
    for (float& value : values) {
      value = static_cast<float>(rng_.Normal());
    }
    return values;
  }

  static std::vector<std::uint32_t> Bits(const LiveShard& shard) {
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
};

PendingUpdate Gradient(std::uint64_t sequence,
                       const RuleStep& step,
                       std::span<const float> values,
                       std::uint32_t slot = 0) {
  return {.writer = {.slot = slot, .incarnation = 1},
          .sequence = sequence,
          .is_gradient = true,
          .step = step,
          .values = values};
}

TEST_F(LiveShardTest, FoldingChangesNoBits) {
  for (const OptimiserKind kind :
       {OptimiserKind::kSgd, OptimiserKind::kMomentum, OptimiserKind::kAdagrad}) {
    const RuleStep step{
        .kind = kind, .rate = 0.01f, .momentum = 0.9f, .epsilon = 1e-6f, .weight_decay = 0.1f};
    LiveShard one_by_one = Make(kind);
    LiveShard folded = Make(kind);
    std::vector<std::vector<float>> gradients;
    for (int i = 0; i < 7; ++i) {
      gradients.push_back(Random());
    }
    std::deque<PendingUpdate> alone;
    std::deque<PendingUpdate> queued;
    for (std::uint64_t i = 0; i < gradients.size(); ++i) {
      one_by_one.Enqueue(alone.emplace_back(Gradient(i + 1, step, gradients[i])));
      one_by_one.Await(alone.back());
      folded.Enqueue(queued.emplace_back(Gradient(i + 1, step, gradients[i])));
    }
    for (PendingUpdate& update : queued) {
      EXPECT_FALSE(update.settled);
    }
    for (PendingUpdate& update : queued) {
      folded.Await(update);
      EXPECT_EQ(update.ack.outcome, PushOutcome::kApplied);
    }
    EXPECT_EQ(Bits(folded), Bits(one_by_one));
  }
}

TEST_F(LiveShardTest, AWholeQueueIsJudgedInItsOrder) {
  LiveShard shard = Make(OptimiserKind::kSgd);
  const RuleStep step{.rate = 1};
  const std::vector<float> gradient(kElements, 1);
  std::deque<PendingUpdate> queued;
  for (const std::uint64_t sequence : {1, 2, 2, 4, 3, 4}) {
    shard.Enqueue(queued.emplace_back(Gradient(sequence, step, gradient)));
  }
  for (PendingUpdate& update : queued) {
    shard.Await(update);
  }
  EXPECT_EQ(queued[0].ack.outcome, PushOutcome::kApplied);
  EXPECT_EQ(queued[1].ack.outcome, PushOutcome::kApplied);
  EXPECT_EQ(queued[2].ack.outcome, PushOutcome::kDuplicate);
  EXPECT_EQ(queued[3].ack.outcome, PushOutcome::kUnexpectedSequence);
  EXPECT_EQ(queued[3].ack.expected, 3u);
  EXPECT_EQ(queued[4].ack.outcome, PushOutcome::kApplied);
  EXPECT_EQ(queued[5].ack.outcome, PushOutcome::kApplied);
  EXPECT_EQ(queued[5].ack.version, 4u);
  EXPECT_EQ(shard.Read(nullptr).values[0], 0.5f - 4);
}

TEST_F(LiveShardTest, StalenessCountsTheUpdatesSinceTheFetch) {
  LiveShard shard = Make(OptimiserKind::kSgd);
  const std::vector<float> gradient(kElements);
  std::deque<PendingUpdate> updates;
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    PendingUpdate& update = updates.emplace_back(Gradient(1, {.rate = 1}, gradient, slot));
    update.fetched_version = slot == 3 ? 100 : 1;
    shard.Enqueue(update);
    shard.Await(update);
  }
  EXPECT_EQ(updates[0].ack.staleness, 0u);
  EXPECT_EQ(updates[1].ack.staleness, 0u);
  EXPECT_EQ(updates[2].ack.staleness, 1u);
  EXPECT_EQ(updates[3].ack.staleness, 0u);  // the server was rolled back below the fetch
}

TEST_F(LiveShardTest, AReadSaysWhichUpdatesOfTheAskerItIncludes) {
  LiveShard shard = Make(OptimiserKind::kSgd);
  const std::vector<float> gradient(kElements);
  PendingUpdate update = Gradient(1, {.rate = 1}, gradient, 2);
  shard.Enqueue(update);
  shard.Await(update);
  const Writer writer{.slot = 2, .incarnation = 1};
  const Writer successor{.slot = 2, .incarnation = 2};
  EXPECT_EQ(shard.Read(&writer).included_sequence, 1u);
  EXPECT_EQ(shard.Read(&successor).included_sequence, 0u);
  EXPECT_EQ(shard.Read(nullptr).included_sequence, 0u);
  EXPECT_EQ(shard.Read(nullptr).version, 1u);
}

TEST_F(LiveShardTest, AFlushCountsTheUpdatesSinceTheLast) {
  LiveShard shard = Make(OptimiserKind::kSgd);
  const std::vector<float> gradient(kElements);
  std::uint64_t updates = 0;
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
    PendingUpdate update = Gradient(sequence, {.rate = 1}, gradient);
    shard.Enqueue(update);
    shard.Await(update);
  }
  EXPECT_EQ(dirty_.Take().size(), 1u);
  shard.EncodeForFlush(updates);
  EXPECT_EQ(updates, 3u);
  EXPECT_EQ(dirty_.Take().size(), 0u);
  PendingUpdate update = Gradient(4, {.rate = 1}, gradient);
  shard.Enqueue(update);
  shard.Await(update);
  EXPECT_EQ(dirty_.Take().size(), 1u);
}

}  // namespace
}  // namespace adamant::parameter_server
