#include "operator/kube/pods/known_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <vector>

namespace adamant::kube {
namespace {

using controller::Role;
using controller::StartProcess;
using State = ObservedPod::State;

constexpr StartProcess kFirst{.id = {Role::kWorker, 0}, .generation = 1};
constexpr StartProcess kSecond{.id = {Role::kWorker, 0}, .generation = 2};
constexpr StartProcess kOther{.id = {Role::kWorker, 1}, .generation = 1};

constexpr Clock::TimePoint kNow{};

// What is added to an empty view.
std::vector<ObservedPod> Missing(const KnownPods& pods) {
  std::vector<ObservedPod> observed;
  pods.Complete("job", observed);
  return observed;
}

auto Is(const StartProcess& process, State state) {
  return testing::AllOf(testing::Field(&ObservedPod::process, process),
                        testing::Field(&ObservedPod::state, state));
}

TEST(KnownPodsTest, WhatWasMadeIsPendingAndWhatWasSeenIsGone) {
  KnownPods pods;
  pods.OnMade(kFirst, "a", kNow);
  pods.OnSeen(kOther, "b");
  EXPECT_THAT(Missing(pods),
              testing::ElementsAre(Is(kFirst, State::kPending), Is(kOther, State::kGone)));
  pods.OnSeen(kFirst, "a");
  EXPECT_THAT(Missing(pods),
              testing::ElementsAre(Is(kFirst, State::kGone), Is(kOther, State::kGone)));
}

TEST(KnownPodsTest, OneThatTheApiSaysIsNotThereIsGoneUntilAViewShowsIt) {
  KnownPods pods;
  EXPECT_FALSE(pods.Knows(kFirst));
  pods.OnMissing(kFirst);
  EXPECT_TRUE(pods.Knows(kFirst));
  EXPECT_THAT(Missing(pods), testing::ElementsAre(Is(kFirst, State::kGone)));
  std::vector<ObservedPod> observed{{.process = kFirst, .state = State::kRunning}};
  pods.Complete("job", observed);
  EXPECT_THAT(observed, testing::ElementsAre(Is(kFirst, State::kRunning)));
}

TEST(KnownPodsTest, WhatTheViewShowsIsNotAdded) {
  KnownPods pods;
  pods.OnMade(kFirst, "a", kNow);
  std::vector<ObservedPod> observed{{.process = kFirst, .state = State::kRunning}};
  pods.Complete("job", observed);
  EXPECT_THAT(observed, testing::ElementsAre(Is(kFirst, State::kRunning)));
}

TEST(KnownPodsTest, APodThatTheApiDoesNotKnowIsGone) {
  KnownPods pods;
  pods.OnMade(kFirst, "a", kNow);
  pods.OnMade(kOther, "b", kNow);
  pods.OnGone("a");
  EXPECT_THAT(Missing(pods),
              testing::ElementsAre(Is(kFirst, State::kGone), Is(kOther, State::kPending)));
}

TEST(KnownPodsTest, WhatNoViewShowsIsToBeAskedForAfterAWhile) {
  KnownPods pods;
  pods.OnMade(kFirst, "a", kNow);
  pods.OnMade(kOther, "b", kNow);
  EXPECT_EQ(pods.NextUnseen(), kNow + KnownPods::kUnseen);
  EXPECT_TRUE(pods.TakeUnseen(kNow + KnownPods::kUnseen - std::chrono::seconds(1)).empty());
  pods.OnSeen(kOther, "b");
  const auto unseen = pods.TakeUnseen(kNow + KnownPods::kUnseen);
  ASSERT_EQ(unseen.size(), 1U);
  EXPECT_EQ(unseen[0].process, kFirst);
  EXPECT_EQ(unseen[0].uid, "a");
  EXPECT_TRUE(pods.TakeUnseen(kNow + KnownPods::kUnseen).empty());
  EXPECT_EQ(pods.NextUnseen(), kNow + 2 * KnownPods::kUnseen);
  pods.OnGone("a");
  EXPECT_EQ(pods.NextUnseen(), std::nullopt);
}

TEST(KnownPodsTest, EarlierGenerationsThanTheWantedOnesAreForgotten) {
  KnownPods pods;
  pods.OnSeen(kFirst, "a");
  pods.OnMade(kSecond, "b", kNow);
  pods.OnMade(kOther, "c", kNow);
  pods.ForgetBefore(std::vector{kFirst});
  EXPECT_EQ(Missing(pods).size(), 3u) << "another controller may have made the later one";
  pods.ForgetBefore(std::vector{kSecond, kOther});
  EXPECT_THAT(Missing(pods),
              testing::ElementsAre(Is(kSecond, State::kPending), Is(kOther, State::kPending)));
}

TEST(KnownPodsTest, WhatWasRefusedIsNotAskedForUntilItsTime) {
  const absl::Status why = absl::ResourceExhaustedError("quota");
  const Clock::TimePoint now{};
  KnownPods pods;
  pods.OnRefused(kFirst, why, now + std::chrono::seconds(1));
  EXPECT_EQ(pods.RefusalOf(kFirst, now), why);
  EXPECT_EQ(pods.RefusalOf(kOther, now), absl::OkStatus());
  EXPECT_EQ(pods.RefusalOf(kFirst, now + std::chrono::seconds(1)), absl::OkStatus());
  pods.OnMade(kFirst, "a", kNow);
  EXPECT_EQ(pods.RefusalOf(kFirst, now), absl::OkStatus());
  pods.OnRefused(kFirst, why, now + std::chrono::seconds(1));
  pods.ForgetBefore(std::vector{kSecond});
  EXPECT_EQ(pods.RefusalOf(kFirst, now), absl::OkStatus());
}

}  // namespace
}  // namespace adamant::kube
