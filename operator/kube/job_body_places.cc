#include <algorithm>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "operator/core/server_places.h"
#include "operator/kube/claim_object.h"
#include "operator/kube/client/json.h"
#include "operator/kube/job_body.h"

// Where parameter servers run, and whether they should rather run elsewhere.
namespace adamant::kube {

using controller::ObservedPod;
using controller::Role;

namespace {

constexpr char kSelectedNode[] = "volume.kubernetes.io/selected-node";
constexpr std::chrono::minutes kBetweenLooks{1};

bool IsServer(const PodView& view) {
  return view.export_snapshot == 0 && view.pod.process.id.role == Role::kParameterServer;
}

// The first pod of a slot has a volume that may still be made anywhere.
bool WaitsForItsNode(const PodView& view) {
  return IsServer(view) && view.node.empty() && view.pod.state == ObservedPod::State::kPending &&
         !view.pod.deleting && view.pod.process.generation > 1;
}

std::string ZoneOf(const NodeViews& nodes, const std::string& name) {
  const auto node = nodes.find(name);
  return node == nodes.end() || node->second == nullptr ? "" : node->second->zone;
}

}  // namespace

// " (on node2)": the last process of a slot that has had a node. "": none is known.
std::string JobBody::WhereItRan(controller::MemberId id) const {
  const auto after = ran_on_.upper_bound({.id = id, .generation = UINT64_MAX});
  const bool known = after != ran_on_.begin() && std::prev(after)->first.id == id;
  return known ? " (on " + std::prev(after)->second + ")" : "";
}

// Members name their node, and Kubernetes its zone.
void JobBody::HandleZones() {
  std::map<std::string, std::string> zones;
  for (const auto& [name, node] : nodes_) {
    if (node != nullptr && !node->zone.empty()) {
      zones.emplace(name, node->zone);
    }
  }
  if (zones != zones_) {
    zones_ = std::move(zones);
    Handle(controller::ZonesKnown{zones_});
  }
}

// Which pods wait for a node that takes none, and since when.
void JobBody::FindShutOut(const JobObjects& seen) {
  std::set<std::string> waiting;
  for (const auto& view : seen.pods) {
    if (!seen.node_of || !WaitsForItsNode(*view)) {
      continue;
    }
    waiting.insert(view->pod.uid);
    auto found = shut_out_.find(view->pod.uid);
    if (found == shut_out_.end()) {
      found = shut_out_.emplace(view->pod.uid, Waiting{NodeOfVolume(view->pod.process)}).first;
    }
    const std::string& name = found->second.node;
    const auto node = name.empty() ? nullptr : seen.node_of(name);
    const bool takes_pods = name.empty() || (node != nullptr && node->takes_pods);
    if (takes_pods) {
      found->second.since.reset();
    } else if (!found->second.since) {
      found->second.since = context_.clock.Now();
    }
  }
  std::erase_if(shut_out_, [&](const auto& entry) { return !waiting.contains(entry.first); });
}

// Empty where the volume is not bound to one, as far as anybody says.
std::string JobBody::NodeOfVolume(const controller::StartProcess& process) const {
  const std::string claim =
      ClaimName(job_.key.name, process.id.slot, controller_->VolumeOf(process.id));
  const auto object = client_.Get(kPersistentVolumeClaims, {job_.key.ns, claim});
  return object.ok() ? StringAt(*object, {"metadata", "annotations", kSelectedNode}) : "";
}

// Where several servers share a node or a zone, as there was no other, and one has room now: one at
// a time is evicted, as it were. It hands over what it has before it ends, and learns it anew.
absl::Status JobBody::MoveServer(const JobObjects& seen) {
  const Clock::TimePoint now = context_.clock.Now();
  if (!seen.all_nodes || now < next_move_ || !controller_->CanSpareAServer()) {
    return absl::OkStatus();
  }
  next_move_ = now + kBetweenLooks;
  std::vector<controller::ServerPlace> servers;
  for (const auto& view : seen.pods) {
    if (IsServer(*view) && view->pod.state == ObservedPod::State::kRunning && !view->pod.deleting) {
      servers.push_back(
          {.slot = view->pod.process.id.slot, .at = {view->node, ZoneOf(nodes_, view->node)}});
    }
  }
  std::vector<controller::NodePlace> open;
  for (const auto& node : seen.all_nodes()) {
    if (node->ready && node->takes_pods) {
      open.push_back({.node = node->name, .zone = node->zone});
    }
  }
  const std::optional<std::uint32_t> slot = controller::ServerToMove(servers, open);
  if (!slot) {
    move_wait_ = kFirstMoveWait;
    return absl::OkStatus();
  }
  next_move_ = now + move_wait_;
  move_wait_ = std::min(2 * move_wait_, kLastMoveWait);
  const auto pod = std::ranges::find_if(seen.pods, [&](const auto& view) {
    return IsServer(*view) && view->pod.process.id.slot == *slot &&
           view->pod.state == ObservedPod::State::kRunning;
  });
  moving_ = (*pod)->pod.uid;
  Record(false,
         "Spreading",
         controller::ToString((*pod)->pod.process.id) + " leaves node " + (*pod)->node +
             ", which it shares with another, as there are nodes without one");
  return RemovePod({.name = (*pod)->pod.name, .uid = moving_});
}

}  // namespace adamant::kube
