#include "services/worker/core/sync/fetches/fetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "tests/unit/services/worker/core/worker_rig.h"

namespace adamant::worker {
namespace {

using testing::Each;

/// A learner with two threads that are not there, and one server with everything.
class FetcherTest : public testing::Test {
 protected:
  FetcherTest() {
    PlacementView placement;
    placement.version = 1;
    placement.buckets.resize(lone_.layout.buckets(), {.version = 1, .generation = 1, .primary = 0});
    routes_.OnPlacement(placement);
    routes_.OnConnected(0);
    pushes_.OnPlacement();
  }

  /// The server answers with `value` everywhere; returns what the fetcher makes of it.
  bool Answer(const FetchMessage& message, float value, std::uint64_t version) {
    FetchReply reply = {.request = message.request};
    for (const ShardId shard : message.shards) {
      reply.shards.push_back({.shard = shard, .version = version, .configuration_version = 1});
    }
    const auto read = [value](std::span<float> values) {
      std::ranges::fill(values, value);
      return absl::OkStatus();
    };
    const auto complete = fetcher_.OnReply(reply, read, now_);
    EXPECT_TRUE(complete.ok());
    return complete.ok() && *complete;
  }

  /// Likewise, to the one message that is to be sent.
  bool Deliver(float value, std::uint64_t version = 1) {
    const std::vector<FetchMessage> messages = fetches_.Poll(now_);
    EXPECT_EQ(messages.size(), 1u);
    return !messages.empty() && Answer(messages.front(), value, version);
  }

  /// Both threads wait.
  void Wait() {
    for (std::size_t thread = 0; thread < lone_.learner.threads(); ++thread) {
      fetcher_.OnReset(lone_.learner.commands().reset_wanted());
    }
  }

  /// The first renewal.
  void Begin(float value, std::uint64_t version = 1) {
    Wait();
    EXPECT_TRUE(Deliver(value, version));
    EXPECT_TRUE(fetcher_.FinishRenewal());
  }

  /// Starts a push; returns the version that it says it was computed from.
  std::uint64_t PushedVersion() {
    pushes_.Push({});
    const std::vector<PushTracker::Message> messages = pushes_.Poll(now_);
    return std::get<PushMessage>(messages.at(0)).updates.at(0).fetched_version;
  }

  LoneLearner lone_{{.threads = 2}};
  FetchSlot& slot_ = lone_.learner.fetch();
  Routes routes_{lone_.layout};
  PushTracker pushes_{{.pushed = lone_.plan.pushed, .max_pushes = 2, .max_message_bytes = 1 << 20},
                      lone_.layout,
                      routes_};
  FetchTracker fetches_{1 << 20, lone_.layout, routes_};
  PushStore store_{lone_.learner, 0};
  Asynchrony asynchrony_{AsynchronyOptionsOf(lone_.learner.options(), lone_.plan),
                         lone_.plan,
                         lone_.layout.shards().size()};
  Fetcher fetcher_{lone_.learner, fetches_, pushes_, store_, asynchrony_};
  const Clock::TimePoint now_{};
};

TEST_F(FetcherTest, TheFirstWeightsComeWhileAllThreadsWait) {
  EXPECT_FALSE(fetcher_.StartRenewal()) << "it is under way from the start";
  EXPECT_FALSE(fetcher_.Start());
  fetcher_.OnReset(1);
  EXPECT_TRUE(fetches_.Poll(now_).empty()) << "one thread does not wait";
  fetcher_.OnReset(1);
  EXPECT_FALSE(fetcher_.FinishRenewal()) << "the values are not there";
  EXPECT_TRUE(Deliver(7));
  EXPECT_EQ(slot_.BeginApply(), FetchSlot::Begun::kNothing) << "no thread is to apply them";
  EXPECT_TRUE(fetcher_.FinishRenewal());
  EXPECT_THAT(lone_.learner.weights(), Each(7));
  EXPECT_EQ(lone_.learner.commands().renewed(), 1u);
  EXPECT_FALSE(fetcher_.FinishRenewal());
}

TEST_F(FetcherTest, PushesNameAFetchOnceItIsApplied) {
  Begin(7, 3);
  slot_.Request();
  EXPECT_TRUE(fetcher_.Start());
  EXPECT_EQ(slot_.BeginApply(), FetchSlot::Begun::kNotYet);
  EXPECT_TRUE(Deliver(8, 5));
  EXPECT_EQ(slot_.BeginApply(), FetchSlot::Begun::kApply);
  EXPECT_THAT(slot_.values(), Each(8));
  fetcher_.OnApplied(slot_.id() - 1);
  EXPECT_EQ(PushedVersion(), 3u) << "that was the one before";
  fetcher_.OnApplied(slot_.id());
  EXPECT_EQ(PushedVersion(), 5u);
}

TEST_F(FetcherTest, WhoRequestsTheNextFetchHasAppliedTheLast) {
  Begin(7, 3);
  slot_.Request();
  EXPECT_TRUE(fetcher_.Start());
  EXPECT_TRUE(Deliver(8, 5));
  EXPECT_TRUE(fetcher_.Start());
  EXPECT_EQ(PushedVersion(), 5u);
  EXPECT_TRUE(Deliver(9, 6)) << "another one is under way";
}

TEST_F(FetcherTest, ARenewalTakesThePlaceOfTheFetchUnderWay) {
  Begin(7);
  slot_.Request();
  EXPECT_TRUE(fetcher_.Start());
  const std::vector<FetchMessage> before = fetches_.Poll(now_);
  ASSERT_EQ(before.size(), 1u);
  EXPECT_TRUE(fetcher_.StartRenewal());
  Wait();
  EXPECT_FALSE(Answer(before.front(), 8, 5)) << "nobody waits for it";
  EXPECT_TRUE(Deliver(9));
  EXPECT_EQ(slot_.BeginApply(), FetchSlot::Begun::kNothing);
  EXPECT_TRUE(fetcher_.FinishRenewal());
  EXPECT_THAT(lone_.learner.weights(), Each(9));
}

TEST_F(FetcherTest, ASnapshotIsKeptApartFromTheValuesOfNow) {
  Begin(7);
  ASSERT_TRUE(fetcher_.snapshot().Want(1, 5));
  ASSERT_TRUE(fetcher_.snapshot().StartDue());
  EXPECT_TRUE(Deliver(8));
  EvaluationWeights& evaluation = lone_.learner.evaluation();
  EXPECT_EQ(evaluation.Begin(5), EvaluationWeights::Begun::kReady);
  EXPECT_THAT(evaluation.values(), Each(8));
  EXPECT_THAT(slot_.values(), Each(7));
  EXPECT_EQ(slot_.BeginApply(), FetchSlot::Begun::kNothing);
  EXPECT_EQ(fetcher_.completed(), 2u);
}

}  // namespace
}  // namespace adamant::worker
