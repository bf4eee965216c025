#include "operator/kube/resources/server_moves.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "operator/core/processes/server_places.h"
#include "operator/kube/resources/waiting_servers.h"
#include "operator/kube_client/base/json.h"

namespace adamant::kube {
namespace {

constexpr std::chrono::minutes kBetweenLooks{1};

bool Runs(const PodView& view) {
  return IsServer(view) && view.pod.state == ObservedPod::State::kRunning;
}

std::vector<controller::ServerPlace> PlacesOf(const PodViews& pods, const PodNodes& nodes) {
  std::vector<controller::ServerPlace> servers;
  for (const auto& view : pods) {
    if (Runs(*view) && !view->pod.deleting) {
      servers.push_back(
          {.slot = view->pod.process.id.slot, .at = {view->node, nodes.ZoneOf(view->node)}});
    }
  }
  return servers;
}

std::vector<controller::NodePlace> OpenNodes(const JobObjects& seen, const Json& tolerations) {
  std::vector<controller::NodePlace> open;
  for (const auto& node : seen.all_nodes()) {
    if (node->ready && TakesPods(*node, tolerations)) {
      open.push_back({.node = node->name, .zone = node->zone});
    }
  }
  return open;
}

}  // namespace

const PodView* ServerMoves::Choose(const JobObjects& seen,
                                   const PodNodes& nodes,
                                   const Json& tolerations) {
  const Clock::TimePoint now = clock_.Now();
  next_ = now + kBetweenLooks;
  const std::optional<std::uint32_t> slot =
      controller::ServerToMove(PlacesOf(seen.pods, nodes), OpenNodes(seen, tolerations));
  if (!slot) {
    wait_ = kFirstWait;
    return nullptr;
  }
  next_ = now + wait_;
  wait_ = std::min(2 * wait_, kLastWait);
  const auto pod = std::ranges::find_if(seen.pods, [&](const auto& view) {
    return Runs(*view) && view->pod.process.id.slot == *slot;
  });
  moving_ = (*pod)->pod.uid;
  return pod->get();
}

}  // namespace adamant::kube
