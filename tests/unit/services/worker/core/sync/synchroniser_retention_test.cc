// Synchroniser when servers roll back, and when pushes pause: what is retained, what local weights
// count, and who waits.

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "services/worker/core/sync/synchroniser.h"
#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

using std::chrono::seconds;

/// Trains so many batches, as far as accumulators go.
void Train(Rig& rig, int batches) {
  for (int i = 0; i < batches; ++i) {
    ASSERT_TRUE(rig.PutBatch());
    rig.Settle();
  }
}

void Flush(Rig& rig) {
  rig.worker.Flush(0);
  rig.Settle();
  ASSERT_EQ(rig.synchroniser.TakeFlushed(), 0u);
}

float LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

/// How far local weights may be from the servers': with the optimiser there, its weight decay is
/// not in them.
float Tolerance(const RigOptions& options) {
  return options.location == OptimiserLocation::kServer ? 5e-3F : 1e-4F;
}

constexpr RigOptions kPushOften = {.fetch_every = 1000, .push_every = 1, .retain_pushes = 3};

TEST(RetainingSynchroniserTest, TheLimitIsReachedThenServersAreAskedToFlushAndThreadsWait) {
  Rig rig(kPushOften);
  rig.Begin();
  const std::uint64_t bytes = Accumulator::BytesOf(rig.plan);
  Train(rig, 2);
  EXPECT_EQ(rig.synchroniser.statistics().retained_bytes, 2 * bytes);
  EXPECT_EQ(rig.flush_requests, 0);
  Train(rig, 1);
  EXPECT_EQ(rig.synchroniser.statistics().retained_bytes, 3 * bytes);
  EXPECT_EQ(rig.flush_requests, 2) << "one to each server";
  Train(rig, 8);
  EXPECT_EQ(rig.learner.steps(), 3 + ThreadChannel::kAccumulators);
  EXPECT_EQ(rig.acknowledged.size(), rig.learner.steps()) << "batches need not be on disk";
  EXPECT_EQ(rig.threads[0]->Advance(), TrainingThread::Progress::kBlocked);
  rig.servers.WriteToDisk();
  ASSERT_TRUE(rig.synchroniser.NextAdvance().has_value());
  rig.now = *rig.synchroniser.NextAdvance();
  rig.Settle();
  EXPECT_EQ(rig.learner.steps(), 11u);
}

TEST(RetainingSynchroniserTest, WhatTheThreadsUseIsReusedNotTakenAnew) {
  Rig rig(kPushOften);
  rig.Begin();
  std::set<const float*> memory;
  for (int i = 0; i < 50; ++i) {
    rig.PutBatch();
    rig.threads[0]->Advance();
    ASSERT_TRUE(rig.synchroniser.Advance(rig.now).ok());
    for (const Synchroniser::Message& message : rig.synchroniser.TakeMessages()) {
      if (const auto* push = std::get_if<PushMessage>(&message)) {
        const PushPayload payload = rig.synchroniser.PayloadOf(*push);
        const ShardId shard = push->updates[0].shard;
        if (shard == rig.plan.pushed[0].shard) {
          memory.insert(payload.updates[0].values.data());
        }
        ASSERT_TRUE(rig.synchroniser.OnPushReply(rig.servers.Apply(*push, payload), rig.now).ok());
      }
    }
    rig.servers.WriteToDisk();
    ASSERT_TRUE(rig.Pump().ok());
  }
  EXPECT_EQ(rig.learner.steps(), 50u);
  EXPECT_LE(memory.size(), 3 + ThreadChannel::kAccumulators);
}

TEST(RetainingSynchroniserTest, WithoutALimitNothingIsRetainedAndNobodyWaits) {
  RigOptions options = kPushOften;
  options.retain_pushes = 0;
  Rig rig(options);
  rig.Begin();
  Train(rig, 30);
  EXPECT_EQ(rig.learner.steps(), 30u);
  EXPECT_EQ(rig.synchroniser.statistics().retained_bytes, 0u);
  EXPECT_EQ(rig.flush_requests, 0);
}

struct Scheme {
  const char* name;
  RigOptions options;
};

class RollbackTest : public testing::TestWithParam<Scheme> {};

// Without fetches what is pushed depends on nothing else, so the servers' bits must be those of a
// run in which they did not die.
TEST_P(RollbackTest, ServersEndWithTheBitsOfARunWithoutDeaths) {
  RigOptions options = GetParam().options;
  options.fetch_every = 1000;
  options.retain_pushes = 100;
  Rig undisturbed(options);
  undisturbed.Begin();
  Train(undisturbed, 24);
  Flush(undisturbed);
  Rig rig(options);
  rig.Begin();
  Train(rig, 5);
  rig.servers.WriteToDisk();
  Train(rig, 6);
  rig.RestartServers();
  Train(rig, 5);
  rig.RestartServers();
  rig.Settle();
  rig.servers.WriteToDisk();
  Train(rig, 8);
  rig.RestartServers();
  Flush(rig);
  EXPECT_EQ(rig.servers.weights(), undisturbed.servers.weights());
  EXPECT_EQ(rig.acknowledged.size(), undisturbed.acknowledged.size());
  EXPECT_GT(rig.synchroniser.statistics().updates_resent, 0u);
  EXPECT_EQ(rig.synchroniser.statistics().updates_lost, 0u);
}

TEST_P(RollbackTest, LocalWeightsKeepWhatAFetchedValueHasLost) {
  RigOptions options = GetParam().options;
  options.fetch_every = 1;
  options.push_every = 1;
  options.rate = 0.02;
  options.retain_pushes = 100;
  Rig rig(options);
  rig.Begin();
  Train(rig, 8);
  rig.RestartServers();
  const float lost = LargestDifference(rig.LocalWeights(), rig.servers.weights());
  ASSERT_GT(lost, 3 * Tolerance(options));
  Train(rig, 1);  // asks for values, which come before anything is sent again
  EXPECT_GT(rig.synchroniser.statistics().updates_resent, 0u);
  Train(rig, 1);  // applies them
  EXPECT_LT(LargestDifference(rig.LocalWeights(), rig.servers.weights()), Tolerance(options));
}

INSTANTIATE_TEST_SUITE_P(Schemes,
                         RollbackTest,
                         testing::Values(Scheme{"Gradients",
                                                {.push_every = 2, .kind = OptimiserKind::kSgd}},
                                         Scheme{"Activations",
                                                {.push_every = 2,
                                                 .kind = OptimiserKind::kSgd,
                                                 .location = OptimiserLocation::kServer,
                                                 .rate = 0.02,
                                                 .protocol = UpdateProtocol::kActivations}}),
                         [](const auto& scheme) { return scheme.param.name; });

TEST(RollbackOfThreadsTest, SumsOfSeveralThreadsAreSentAgain) {
  for (const UpdateProtocol protocol : {UpdateProtocol::kGradients, UpdateProtocol::kActivations}) {
    RigOptions options = {.threads = 3,
                          .fetch_every = 2,
                          .push_every = 2,
                          .kind = OptimiserKind::kSgd,
                          .location = OptimiserLocation::kServer,
                          .rate = 0.02,
                          .protocol = protocol,
                          .retain_pushes = 100};
    Rig rig(options);
    rig.Begin();
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 12; ++i) {
        ASSERT_TRUE(rig.PutBatch());
      }
      rig.Settle();
      rig.RestartServers();
    }
    Flush(rig);
    EXPECT_LT(LargestDifference(rig.LocalWeights(), rig.servers.weights()), Tolerance(options));
    EXPECT_EQ(rig.acknowledged.size(), 48u);
    EXPECT_EQ(rig.synchroniser.statistics().updates_lost, 0u);
  }
}

TEST(PausedSynchroniserTest, NoPushStartsAndThreadsComputeAsLongAsAccumulatorsLast) {
  Rig rig({.fetch_every = 1000, .push_every = 2});
  rig.Begin();
  Train(rig, 2);
  rig.synchroniser.Pause(7, rig.now);
  Train(rig, 14);
  EXPECT_EQ(rig.learner.steps(), 2 + 2 * ThreadChannel::kAccumulators);
  EXPECT_EQ(rig.synchroniser.statistics().pushes_acknowledged, 1u);
  const auto paused = rig.synchroniser.TakePaused();
  ASSERT_TRUE(paused.has_value());
  EXPECT_EQ(paused->checkpoint, 7u);
  EXPECT_EQ(paused->sequence, 1u);
  EXPECT_FALSE(rig.synchroniser.TakePaused().has_value());
  rig.synchroniser.Pause(7, rig.now);
  EXPECT_TRUE(rig.synchroniser.TakePaused().has_value()) << "the controller asked again";
  rig.now += seconds(1);
  rig.synchroniser.Resume(7);
  rig.Settle();
  EXPECT_EQ(rig.learner.steps(), 16u);
  EXPECT_EQ(rig.synchroniser.statistics().paused, seconds(1));
}

TEST(PausedSynchroniserTest, IsAnsweredWhenWhatWasPushedIsAcknowledgedAndCounted) {
  Rig rig({.fetch_every = 1000, .push_every = 1});
  rig.Begin();
  rig.count_batches = false;
  rig.PutBatch();
  rig.threads[0]->Advance();
  ASSERT_TRUE(rig.Pump().ok());
  rig.synchroniser.Pause(7, rig.now);
  EXPECT_FALSE(rig.synchroniser.TakePaused().has_value()) << "a push is in flight";
  rig.Settle();
  ASSERT_EQ(rig.acknowledged.size(), 1u);
  EXPECT_FALSE(rig.synchroniser.TakePaused().has_value()) << "its batch is not counted";
  rig.intake.OnAcknowledged(rig.acknowledged);
  EXPECT_TRUE(rig.synchroniser.TakePaused().has_value());
}

TEST(PausedSynchroniserTest, WaitsForWhatHasToBeSentAgain) {
  Rig rig({.fetch_every = 1000, .push_every = 1, .retain_pushes = 10});
  rig.Begin();
  Train(rig, 3);
  rig.RestartServers();
  rig.synchroniser.Pause(7, rig.now);
  ASSERT_TRUE(rig.Pump().ok());
  EXPECT_FALSE(rig.synchroniser.TakePaused().has_value());
  rig.Settle();
  EXPECT_TRUE(rig.synchroniser.TakePaused().has_value());
  EXPECT_GT(rig.synchroniser.statistics().updates_resent, 0u);
}

TEST(PausedSynchroniserTest, AFlushAStopAndASilentControllerEndIt) {
  for (int way = 0; way < 3; ++way) {
    Rig rig({.fetch_every = 1000, .push_every = 1});
    rig.Begin();
    rig.synchroniser.Pause(7, rig.now);
    Train(rig, 2);
    ASSERT_EQ(rig.synchroniser.statistics().pushes_acknowledged, 0u);
    switch (way) {
      case 0:
        rig.worker.Flush(0);
        break;
      case 1:
        rig.synchroniser.Stop();
        break;
      default:
        ASSERT_TRUE(rig.synchroniser.NextAdvance().has_value());
        EXPECT_EQ(*rig.synchroniser.NextAdvance(), rig.now + PushPause::kTimeout);
        rig.now += PushPause::kTimeout;
        break;
    }
    rig.Settle();
    EXPECT_EQ(rig.synchroniser.statistics().pushes_acknowledged, 2u) << way;
  }
}

}  // namespace
}  // namespace adamant::worker
