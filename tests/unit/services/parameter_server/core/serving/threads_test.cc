#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "services/common/base/rng.h"
#include "tests/unit/services/parameter_server/core/serving/server_fixture.h"

namespace adamant::parameter_server {
namespace {

using ::testing::Each;

constexpr std::uint32_t kPushers = 4;
constexpr std::uint64_t kRounds = 100;
constexpr std::int64_t kElements = 3 * std::int64_t{ShardLayout::kShardElements} / 64;

class ThreadsTest : public ServerFixture {
 protected:
  /// Three parameters of a shard each, no larger than a test needs.
  static ParameterServerOptions Three() {
    ParameterServerOptions options = Flat(kElements, OnWorker());
    for (const char* name : {"b", "c"}) {
      options.parameters.push_back({.name = name, .layer = "l", .shape = {kElements}});
      options.optimisers.push_back(OnWorker());
    }
    return options;
  }

  /// Pushes, and waits for the answer as a handler does.
  std::vector<ShardAck> Await(const Push& push) {
    std::promise<std::vector<ShardAck>> answer;
    server().Submit(push, [&](std::vector<ShardAck> acks) { answer.set_value(std::move(acks)); });
    return answer.get_future().get();
  }

  /// Sends every push twice in a while, and its shards in varying order.
  void RunPusher(std::uint32_t slot) {
    Rng rng(slot);
    const WorkerId writer{.slot = slot, .incarnation = 1};
    const std::vector<float> ones(kElements, 1);
    ASSERT_TRUE(server().Admit(writer).ok());
    for (Sequence sequence = 1; sequence <= kRounds; ++sequence) {
      Push push{.writer = writer};
      const std::uint64_t first = rng.Below(3);
      for (std::uint64_t i = 0; i < 3; ++i) {
        push.updates.push_back({.shard = static_cast<ShardId>((first + i) % 3),
                                .sequence = sequence,
                                .kind = UpdateKind::kWeightChange,
                                .values = ones});
      }
      for (const ShardAck& ack : Await(push)) {
        ASSERT_EQ(ack.outcome, PushOutcome::kApplied);
      }
      if (rng.Below(4) == 0) {
        for (const ShardAck& ack : Await(push)) {
          ASSERT_EQ(ack.outcome, PushOutcome::kDuplicate);
        }
      }
    }
  }

  /// Whatever is read of a shard is the sum of whole updates.
  void RunReader(const std::atomic<bool>& done) {
    while (!done) {
      const auto values = server().Fetch(nullptr, std::vector<ShardId>{0, 1, 2}, 0);
      ASSERT_TRUE(values.ok());
      for (const ShardValue& value : *values) {
        EXPECT_EQ(value.values.front(), static_cast<float>(value.version));
        EXPECT_EQ(value.values.back(), static_cast<float>(value.version));
      }
    }
  }
};

TEST_F(ThreadsTest, EveryUpdateOfManyPushersIsAppliedOnce) {
  Create(Three());
  std::atomic<bool> done = false;
  std::thread reader([&] { RunReader(done); });
  std::thread flusher([&] {
    for (std::uint64_t snapshot = 1; !done; ++snapshot) {
      EXPECT_TRUE(server().Flush().ok());
      EXPECT_TRUE(server().TakeSnapshot({.snapshot = snapshot, .keep_from = snapshot}).ok());
      (void)server().flusher().dirty().OldestAge();
    }
  });
  std::vector<std::thread> pushers;
  for (std::uint32_t slot = 0; slot < kPushers; ++slot) {
    pushers.emplace_back([this, slot] { RunPusher(slot); });
  }
  for (std::thread& pusher : pushers) {
    pusher.join();
  }
  done = true;
  reader.join();
  flusher.join();
  for (const ShardId shard : {0u, 1u, 2u}) {
    EXPECT_THAT(Values(shard), Each(static_cast<float>(kPushers * kRounds)));
  }

  // What was flushed in between is consistent too, and the last flush has it all.
  ASSERT_TRUE(server().Flush().ok());
  Restart(Three());
  for (const ShardId shard : {0u, 1u, 2u}) {
    EXPECT_THAT(Values(shard), Each(static_cast<float>(kPushers * kRounds)));
  }
}

}  // namespace
}  // namespace adamant::parameter_server
