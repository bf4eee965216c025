#include "operator/kube/resources/pod_nodes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/fakes/fake_clock.h"

namespace adamant::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr controller::SlotId kLostWorker{controller::Role::kWorker, 0};

std::shared_ptr<const PodView> PodOn(std::uint64_t generation, const std::string& node) {
  PodView view;
  view.node = node;
  view.pod.process = {.id = kLostWorker, .generation = generation};
  return std::make_shared<const PodView>(view);
}

class PodNodesTest : public testing::Test {
 protected:
  void See(PodViews pods, const NodeView& node) {
    JobObjects seen;
    seen.pods = std::move(pods);
    seen.node_of = [node](const std::string& name) {
      return name == node.name ? std::make_shared<const NodeView>(node) : nullptr;
    };
    nodes_.Update(seen);
  }

  FakeClock clock_;
  PodNodes nodes_{clock_};
};

TEST_F(PodNodesTest, ANodeThatIsNotReadyIsAway) {
  See({PodOn(1, "a")}, {.name = "a", .ready = true, .zone = "east", .since = {}});
  EXPECT_EQ(nodes_.AwayFor("a"), std::nullopt);
  EXPECT_EQ(nodes_.ZoneOf("a"), "east");
  See({PodOn(1, "a")}, {.name = "a", .ready = false, .out_of_service = true, .since = {}});
  clock_.Advance(seconds(7));
  EXPECT_EQ(nodes_.AwayFor("a"), milliseconds(7'000));
  EXPECT_TRUE(nodes_.IsOutOfService("a"));
  EXPECT_TRUE(nodes_.Zones().empty());
}

TEST_F(PodNodesTest, WhereALostProcessRanIsKept) {
  EXPECT_EQ(nodes_.WhereItRan(kLostWorker), "");
  See({PodOn(1, "a")}, {.name = "a", .since = {}});
  See({PodOn(2, "b")}, {.name = "b", .since = {}});
  EXPECT_EQ(nodes_.WhereItRan(kLostWorker), " (on b)");
  See({}, {});
  EXPECT_EQ(nodes_.WhereItRan(kLostWorker), " (on b)");
  nodes_.ForgetBefore({.id = kLostWorker, .generation = 3});
  EXPECT_EQ(nodes_.WhereItRan(kLostWorker), " (on b)");
  nodes_.ForgetBefore({.id = kLostWorker, .generation = 4});
  EXPECT_EQ(nodes_.WhereItRan(kLostWorker), "");
}

}  // namespace
}  // namespace adamant::kube
