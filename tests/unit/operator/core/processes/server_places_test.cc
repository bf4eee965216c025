#include "operator/core/processes/server_places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/rng.h"

namespace adamant::controller {
namespace {

TEST(ServerPlacesTest, OneOfTwoServersOnANodeMovesToOneThatHasNone) {
  const std::vector<ServerPlace> servers = {{0, {"a"}}, {1, {"a"}}, {2, {"b"}}};
  const std::vector<NodePlace> open = {{"a"}, {"b"}, {"c"}};
  EXPECT_EQ(ServerToMove(servers, open), 0u);
}

TEST(ServerPlacesTest, NobodyMovesWhereAllNodesAreTakenOrClosed) {
  const std::vector<ServerPlace> servers = {{0, {"a"}}, {1, {"a"}}, {2, {"b"}}};
  EXPECT_EQ(ServerToMove(servers, std::vector<NodePlace>{{"a"}, {"b"}}), std::nullopt);
  EXPECT_EQ(ServerToMove(servers, {}), std::nullopt);
  const std::vector<ServerPlace> apart = {{0, {"a"}}, {1, {"b"}}};
  EXPECT_EQ(ServerToMove(apart, std::vector<NodePlace>{{"a"}, {"b"}, {"c"}}), std::nullopt);
}

TEST(ServerPlacesTest, ServersThatShareAZoneMoveToOneThatHasNone) {
  const std::vector<ServerPlace> servers = {{0, {"a", "east"}}, {1, {"b", "east"}}};
  EXPECT_EQ(ServerToMove(servers, std::vector<NodePlace>{{"c", "east"}}), std::nullopt);
  EXPECT_TRUE(ServerToMove(servers, std::vector<NodePlace>{{"c", "west"}}).has_value());
}

TEST(ServerPlacesTest, ZonesComeBeforeNodes) {
  const std::vector<ServerPlace> servers = {
      {0, {"a", "east"}}, {1, {"a", "east"}}, {2, {"b", "west"}}, {3, {"b", "west"}}};
  EXPECT_TRUE(ServerToMove(servers, std::vector<NodePlace>{{"c", "west"}}).has_value());
  const std::vector<ServerPlace> one_more = {
      {0, {"a", "east"}}, {1, {"a", "east"}}, {2, {"b", "west"}}, {3, {"c", "west"}}};
  EXPECT_EQ(ServerToMove(one_more, std::vector<NodePlace>{{"d", "west"}}), std::nullopt)
      << "the west would have three of four";
}

// Where the scheduler would put the server of this slot: with the fewest others.
NodePlace LeastUsed(const std::vector<ServerPlace>& servers,
                    std::uint32_t slot,
                    const std::vector<NodePlace>& nodes,
                    bool zones) {
  const auto others = [&](const NodePlace& node) {
    const auto shares = [&](auto part) {
      return std::ranges::count_if(servers, [&](const ServerPlace& server) {
        return server.slot != slot && server.at.*part == node.*part;
      });
    };
    return std::pair(zones ? shares(&NodePlace::zone) : 0, shares(&NodePlace::node));
  };
  return *std::ranges::min_element(nodes, {}, others);
}

TEST(ServerPlacesTest, MovesToWhereThereIsLeastComeToAnEnd) {
  Rng rng(1);
  for (int round = 0; round < 500; ++round) {
    const bool zones = rng.Below(2) == 0;
    std::vector<NodePlace> nodes;
    for (std::uint64_t i = 0; i < 2 + rng.Below(5); ++i) {
      nodes.push_back(
          {"node-" + std::to_string(i), zones ? "zone-" + std::to_string(rng.Below(3)) : ""});
    }
    std::vector<ServerPlace> servers;
    for (std::uint32_t slot = 0; slot < 1 + rng.Below(8); ++slot) {
      servers.push_back({slot, nodes[rng.Below(nodes.size())]});
    }
    int moves = 0;
    while (const auto slot = ServerToMove(servers, nodes)) {
      ASSERT_LT(++moves, 50) << "round " << round;
      servers[*slot].at = LeastUsed(servers, *slot, nodes, zones);
    }
  }
}

}  // namespace
}  // namespace adamant::controller
