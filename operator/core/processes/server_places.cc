#include "operator/core/processes/server_places.h"

#include <map>

namespace adamant::controller {
namespace {

using Counts = std::map<std::string, int>;

struct Crowd {
  Counts nodes;
  Counts zones;

  explicit Crowd(std::span<const ServerPlace> servers) {
    for (const ServerPlace& server : servers) {
      ++nodes[server.at.node];
      ++zones[server.at.zone];
    }
  }

  [[nodiscard]] static int In(const Counts& counts, const std::string& name) {
    const auto found = counts.find(name);
    return found == counts.end() ? 0 : found->second;
  }

  /// By how many servers more there are at `from`: of zones, where those are known, and of nodes.
  [[nodiscard]] int MoreInZone(const NodePlace& from, const NodePlace& to) const {
    const bool known = !from.zone.empty() && !to.zone.empty() && from.zone != to.zone;
    return known ? In(zones, from.zone) - In(zones, to.zone) : 0;
  }
  [[nodiscard]] int MoreOnNode(const NodePlace& from, const NodePlace& to) const {
    return In(nodes, from.node) - In(nodes, to.node);
  }

  [[nodiscard]] bool IsBetter(const NodePlace& from, const NodePlace& to) const {
    const int zones_more = MoreInZone(from, to);
    if (zones_more >= 2) {
      return MoreOnNode(from, to) >= 0;
    }
    const bool same_zone = from.zone == to.zone;
    return MoreOnNode(from, to) >= 2 &&
           (same_zone || zones_more == 1 || from.zone.empty() || to.zone.empty());
  }
};

}  // namespace

std::optional<std::uint32_t> ServerToMove(std::span<const ServerPlace> servers,
                                          std::span<const NodePlace> open) {
  const Crowd crowd(servers);
  const ServerPlace* best = nullptr;
  int most = 0;
  for (const ServerPlace& server : servers) {
    for (const NodePlace& node : open) {
      if (!crowd.IsBetter(server.at, node)) {
        continue;
      }
      const int gain = 2 * crowd.MoreInZone(server.at, node) + crowd.MoreOnNode(server.at, node);
      if (best == nullptr || gain > most) {
        best = &server;
        most = gain;
      }
    }
  }
  return best == nullptr ? std::nullopt : std::optional(best->slot);
}

}  // namespace adamant::controller
