#include <algorithm>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "operator/core/processes/server_places.h"
#include "operator/kube/job/job_body.h"
#include "operator/kube/volumes/claim_object.h"
#include "operator/kube/volumes/volume_host.h"
#include "operator/kube_client/base/json.h"

// Where parameter servers run, and whether they should rather run elsewhere.
namespace adamant::kube {

using controller::Role;

namespace {

constexpr char kSelectedNode[] = "volume.kubernetes.io/selected-node";
constexpr std::chrono::minutes kBetweenLooks{1};
constexpr std::chrono::seconds kBetweenQuestions{5};  // for the claim of a pod that waits

bool IsServer(const PodView& view) {
  return view.export_snapshot == 0 && view.pod.process.id.role == Role::kParameterServer;
}

bool WaitsForANode(const PodView& view) {
  return IsServer(view) && view.node.empty() && view.pod.state == ObservedPod::State::kPending &&
         !view.pod.deleting;
}

// The first pod of a slot has a volume that may still be made anywhere.
bool IsFirst(const PodView& view) { return view.pod.process.generation == 1; }

bool IsDeleted(const absl::StatusOr<Json>& claim) {
  return absl::IsNotFound(claim.status()) ||
         (claim.ok() && !StringAt(*claim, {"metadata", "deletionTimestamp"}).empty());
}

// The name of the node that has this host name; of one that is gone, that.
std::string NodeOfHost(const std::string& host, const JobObjects& seen) {
  if (seen.all_nodes && !host.empty()) {
    for (const auto& node : seen.all_nodes()) {
      if (node->host_name == host) {
        return node->name;
      }
    }
  }
  return host;
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

// Which pods of servers wait for a node that takes none, and since when; and which wait in vain, as
// somebody has deleted their claim, which was made before them.
void JobBody::FindShutOut(const JobObjects& seen) {
  const Clock::TimePoint now = context_.clock.Now();
  std::set<std::string> waiting;
  for (const auto& view : seen.pods) {
    if (!WaitsForANode(*view)) {
      continue;
    }
    waiting.insert(view->pod.uid);
    // The claim of a first pod was made a moment ago.
    const Clock::TimePoint ask_at = IsFirst(*view) ? now + kBetweenQuestions : now;
    Waiting& pod = shut_out_.try_emplace(view->pod.uid, Waiting{.ask_at = ask_at}).first->second;
    if (now >= pod.ask_at) {
      AskForClaim(view->pod.process, seen, pod);
      pod.ask_at = now + kBetweenQuestions;
    }
    const auto node = pod.node.empty() || !seen.node_of ? nullptr : seen.node_of(pod.node);
    if (!seen.node_of || IsFirst(*view) || pod.node.empty() ||
        (node != nullptr && TakesPods(*node, ServersTolerations()))) {
      pod.since.reset();
    } else if (!pod.since) {
      pod.since = now;
    }
  }
  std::erase_if(shut_out_, [&](const auto& entry) { return !waiting.contains(entry.first); });
}

void JobBody::AskForClaim(const controller::StartProcess& process,
                          const JobObjects& seen,
                          Waiting& pod) const {
  const std::string name =
      ClaimName(job_.key.name, process.id.slot, controller_->VolumeOf(process.id));
  const auto claim = client_.Get(kPersistentVolumeClaims, {job_.key.ns, name});
  pod.deleted_claim = IsDeleted(claim) ? name : "";
  if (claim.ok() && pod.node.empty()) {
    pod.node = NodeOfVolume(*claim, seen);
  }
}

// Empty where nobody says now that the volume of the claim is bound to one.
std::string JobBody::NodeOfVolume(const Json& claim, const JobObjects& seen) const {
  std::string node = StringAt(claim, {"metadata", "annotations", kSelectedNode});
  const std::string volume = StringAt(claim, {"spec", "volumeName"});
  if (!node.empty() || volume.empty()) {
    return node;
  }
  const auto object = client_.Get(kPersistentVolumes, {"", volume});  // one that was made by hand
  return object.ok() ? NodeOfHost(HostOfVolume(*object), seen) : "";
}

Json JobBody::ServersTolerations() const {
  const controller::StartProcess any{.id = {.role = Role::kParameterServer}, .generation = 1};
  const Json pod = PodObject(job_, *view_->job, any, 1, context_.pods);
  const Json* tolerations = Find(pod, {"spec", "tolerations"});
  return tolerations == nullptr ? Json() : *tolerations;
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
  const Json tolerations = ServersTolerations();
  for (const auto& node : seen.all_nodes()) {
    if (node->ready && TakesPods(*node, tolerations)) {
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
