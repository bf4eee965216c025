#include "operator/kube/resources/waiting_servers.h"

#include <nlohmann/json.hpp>
#include <set>

#include "operator/kube/volumes/claim_object.h"
#include "operator/kube/volumes/volume_host.h"
#include "operator/kube_client/base/json.h"

namespace adamant::kube {
namespace {

constexpr char kSelectedNode[] = "volume.kubernetes.io/selected-node";
constexpr std::chrono::seconds kBetweenQuestions{5};  // for the claim of a pod that waits

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

}  // namespace

bool IsServer(const PodView& view) {
  return view.IsProcess() && view.pod.process.id.role == controller::Role::kParameterServer;
}

void WaitingServers::Update(const JobObjects& seen,
                            const std::function<Json()>& tolerations,
                            const VolumeOf& volume_of) {
  const Clock::TimePoint now = writer_.clock().Now();
  std::set<std::string> waiting;
  for (const auto& view : seen.pods) {
    if (!WaitsForANode(*view)) {
      continue;
    }
    waiting.insert(view->pod.uid);
    // The claim of a first pod was made a moment ago.
    const Clock::TimePoint ask_at = IsFirst(*view) ? now + kBetweenQuestions : now;
    Waiting& pod = waiting_.try_emplace(view->pod.uid, Waiting{.ask_at = ask_at}).first->second;
    if (now >= pod.ask_at) {
      const controller::SlotId id = view->pod.process.id;
      AskForClaim(ClaimName(writer_.job().key.name, id.slot, volume_of(id)), seen, pod);
      pod.ask_at = now + kBetweenQuestions;
    }
    const auto node = pod.node.empty() || !seen.node_of ? nullptr : seen.node_of(pod.node);
    if (!seen.node_of || IsFirst(*view) || pod.node.empty() ||
        (node != nullptr && TakesPods(*node, tolerations()))) {
      pod.since.reset();
    } else if (!pod.since) {
      pod.since = now;
    }
  }
  std::erase_if(waiting_, [&](const auto& entry) { return !waiting.contains(entry.first); });
}

std::optional<std::chrono::milliseconds> WaitingServers::ShutOutFor(const std::string& uid) const {
  const auto found = waiting_.find(uid);
  if (found == waiting_.end() || !found->second.since) {
    return std::nullopt;
  }
  return std::chrono::floor<std::chrono::milliseconds>(writer_.clock().Now() -
                                                       *found->second.since);
}

std::string WaitingServers::DeletedClaimOf(const std::string& uid) const {
  const auto found = waiting_.find(uid);
  return found == waiting_.end() ? "" : found->second.deleted_claim;
}

void WaitingServers::AskForClaim(const std::string& name,
                                 const JobObjects& seen,
                                 Waiting& pod) const {
  const auto claim = writer_.client().Get(kPersistentVolumeClaims, {writer_.job().key.ns, name});
  pod.deleted_claim = IsDeleted(claim) ? name : "";
  if (claim.ok() && pod.node.empty() && seen.sees_cluster) {
    pod.node = NodeOfVolume(*claim, seen);
  }
}

// Empty where nobody says now that the volume of the claim is bound to one.
std::string WaitingServers::NodeOfVolume(const Json& claim, const JobObjects& seen) const {
  std::string node = StringAt(claim, {"metadata", "annotations", kSelectedNode});
  const std::string volume = StringAt(claim, {"spec", "volumeName"});
  if (!node.empty() || volume.empty()) {
    return node;
  }
  // One that was made by hand.
  const auto object = writer_.client().Get(kPersistentVolumes, {"", volume});
  return object.ok() ? NodeOfHost(HostOfVolume(*object), seen) : "";
}

}  // namespace adamant::kube
