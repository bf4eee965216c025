#include "operator/kube/resources/server_moves.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/fakes/fake_clock.h"

namespace adamant::kube {
namespace {

using std::chrono::minutes;

std::shared_ptr<const PodView> ServerOn(std::uint32_t slot, const std::string& node) {
  PodView view;
  view.node = node;
  view.pod.process = {.id = {controller::Role::kParameterServer, slot}, .generation = 1};
  view.pod.uid = "uid-" + std::to_string(slot);
  view.pod.state = ObservedPod::State::kRunning;
  return std::make_shared<const PodView>(view);
}

std::shared_ptr<const NodeView> Node(const std::string& name) {
  return std::make_shared<const NodeView>(NodeView{.name = name, .ready = true, .since = {}});
}

class ServerMovesTest : public testing::Test {
 protected:
  JobObjects Seen(PodViews pods, const std::vector<std::shared_ptr<const NodeView>>& nodes) {
    JobObjects seen;
    seen.pods = std::move(pods);
    seen.all_nodes = [nodes] { return nodes; };
    return seen;
  }

  const PodView* Choose(const JobObjects& seen) {
    return moves_.Choose(seen, nodes_, nlohmann::json());
  }

  FakeClock clock_;
  PodNodes nodes_{clock_};
  ServerMoves moves_{clock_};
};

TEST_F(ServerMovesTest, WhereNodesAreNotKnownNobodyLooks) {
  EXPECT_FALSE(moves_.IsDue(JobObjects{}));
  EXPECT_TRUE(moves_.IsDue(Seen({}, {})));
}

TEST_F(ServerMovesTest, OneOfTwoOnANodeMovesAndTheNextLater) {
  const JobObjects seen = Seen({ServerOn(0, "a"), ServerOn(1, "a")}, {Node("a"), Node("b")});
  const PodView* const moves = Choose(seen);
  ASSERT_NE(moves, nullptr);
  EXPECT_TRUE(moves_.Moves(moves->pod.uid));
  EXPECT_FALSE(moves_.Moves("another"));
  clock_.Advance(minutes(9));
  EXPECT_FALSE(moves_.IsDue(seen));
  clock_.Advance(minutes(1));
  EXPECT_TRUE(moves_.IsDue(seen));
  Choose(seen);  // for nothing, it seems
  clock_.Advance(minutes(19));
  EXPECT_FALSE(moves_.IsDue(seen));
}

TEST_F(ServerMovesTest, ServersThatAreApartStayAndAreLookedAtAgainInAMinute) {
  const JobObjects seen = Seen({ServerOn(0, "a"), ServerOn(1, "b")}, {Node("a"), Node("b")});
  EXPECT_EQ(Choose(seen), nullptr);
  EXPECT_FALSE(moves_.IsDue(seen));
  clock_.Advance(minutes(1));
  EXPECT_TRUE(moves_.IsDue(seen));
}

}  // namespace
}  // namespace adamant::kube
