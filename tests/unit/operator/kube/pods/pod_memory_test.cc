#include "operator/kube/pods/pod_memory.h"

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
std::vector<ObservedPod> Missing(const PodMemory& memory) {
  std::vector<ObservedPod> observed;
  memory.Complete("job", observed);
  return observed;
}

auto Is(const StartProcess& process, State state) {
  return testing::AllOf(testing::Field(&ObservedPod::process, process),
                        testing::Field(&ObservedPod::state, state));
}

TEST(PodMemoryTest, WhatWasMadeIsPendingAndWhatWasSeenIsGone) {
  PodMemory memory;
  memory.OnMade(kFirst, "a", kNow);
  memory.OnSeen(kOther, "b");
  EXPECT_THAT(Missing(memory),
              testing::ElementsAre(Is(kFirst, State::kPending), Is(kOther, State::kGone)));
  memory.OnSeen(kFirst, "a");
  EXPECT_THAT(Missing(memory),
              testing::ElementsAre(Is(kFirst, State::kGone), Is(kOther, State::kGone)));
}

TEST(PodMemoryTest, WhatTheViewShowsIsNotAdded) {
  PodMemory memory;
  memory.OnMade(kFirst, "a", kNow);
  std::vector<ObservedPod> observed{{.process = kFirst, .state = State::kRunning}};
  memory.Complete("job", observed);
  EXPECT_THAT(observed, testing::ElementsAre(Is(kFirst, State::kRunning)));
}

TEST(PodMemoryTest, APodThatTheApiDoesNotKnowIsGone) {
  PodMemory memory;
  memory.OnMade(kFirst, "a", kNow);
  memory.OnMade(kOther, "b", kNow);
  memory.OnGone("a");
  EXPECT_THAT(Missing(memory),
              testing::ElementsAre(Is(kFirst, State::kGone), Is(kOther, State::kPending)));
}

TEST(PodMemoryTest, WhatNoViewShowsIsToBeAskedForAfterAWhile) {
  PodMemory memory;
  memory.OnMade(kFirst, "a", kNow);
  memory.OnMade(kOther, "b", kNow);
  EXPECT_EQ(memory.NextUnseen(), kNow + PodMemory::kUnseen);
  EXPECT_TRUE(memory.TakeUnseen(kNow + PodMemory::kUnseen - std::chrono::seconds(1)).empty());
  memory.OnSeen(kOther, "b");
  const auto unseen = memory.TakeUnseen(kNow + PodMemory::kUnseen);
  ASSERT_EQ(unseen.size(), 1U);
  EXPECT_EQ(unseen[0].process, kFirst);
  EXPECT_EQ(unseen[0].uid, "a");
  EXPECT_TRUE(memory.TakeUnseen(kNow + PodMemory::kUnseen).empty());
  EXPECT_EQ(memory.NextUnseen(), kNow + 2 * PodMemory::kUnseen);
  memory.OnGone("a");
  EXPECT_EQ(memory.NextUnseen(), std::nullopt);
}

TEST(PodMemoryTest, EarlierGenerationsThanTheWantedOnesAreForgotten) {
  PodMemory memory;
  memory.OnSeen(kFirst, "a");
  memory.OnMade(kSecond, "b", kNow);
  memory.OnMade(kOther, "c", kNow);
  memory.ForgetBefore(std::vector{kFirst});
  EXPECT_EQ(Missing(memory).size(), 3u) << "another controller may have made the later one";
  memory.ForgetBefore(std::vector{kSecond, kOther});
  EXPECT_THAT(Missing(memory),
              testing::ElementsAre(Is(kSecond, State::kPending), Is(kOther, State::kPending)));
}

TEST(PodMemoryTest, WhatWasRefusedIsNotAskedForUntilItsTime) {
  const absl::Status why = absl::ResourceExhaustedError("quota");
  const Clock::TimePoint now{};
  PodMemory memory;
  memory.OnRefused(kFirst, why, now + std::chrono::seconds(1));
  EXPECT_EQ(memory.RefusalOf(kFirst, now), why);
  EXPECT_EQ(memory.RefusalOf(kOther, now), absl::OkStatus());
  EXPECT_EQ(memory.RefusalOf(kFirst, now + std::chrono::seconds(1)), absl::OkStatus());
  memory.OnMade(kFirst, "a", kNow);
  EXPECT_EQ(memory.RefusalOf(kFirst, now), absl::OkStatus());
  memory.OnRefused(kFirst, why, now + std::chrono::seconds(1));
  memory.ForgetBefore(std::vector{kSecond});
  EXPECT_EQ(memory.RefusalOf(kFirst, now), absl::OkStatus());
}

}  // namespace
}  // namespace adamant::kube
