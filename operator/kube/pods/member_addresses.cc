#include "operator/kube/pods/member_addresses.h"

#include <algorithm>

namespace adamant::kube {
namespace {

// Of a proxy in the operator's own pod, as meshes have them: says nothing of who is behind it.
bool IsLoopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

}  // namespace

std::vector<MemberAddresses::Stranger> MemberAddresses::Update(
    const std::vector<std::shared_ptr<const PodView>>& pods) {
  pods_.clear();
  for (const auto& view : pods) {
    if (view->IsProcess()) {
      pods_[{view->pod.process.id, view->pod.process.generation}] = {.uid = view->pod.uid,
                                                                     .addresses = view->addresses};
    }
  }
  std::vector<Stranger> strangers;
  std::erase_if(unchecked_, [&](const auto& entry) {
    const auto& [process, claim] = entry;
    if (!IsKnown(process)) {
      return false;
    }
    if (std::string why = Objection(process, claim); !why.empty()) {
      strangers.push_back({.connection = claim.connection, .why = std::move(why)});
    }
    return true;
  });
  return strangers;
}

std::string MemberAddresses::OnJoin(controller::ConnectionId connection,
                                    const controller::Join& join) {
  const Key process{join.id, join.generation};
  const Claim claim{.connection = connection,
                    .peer = IsLoopback(join.peer) ? "" : join.peer,
                    .pod_uid = join.pod_uid};
  std::string why = Objection(process, claim);
  if (why.empty()) {
    unchecked_[process] = claim;
  }
  return why;
}

// All is told of it that a claim is compared with.
bool MemberAddresses::IsKnown(const Key& process) const {
  const auto pod = pods_.find(process);
  return pod != pods_.end() && !pod->second.addresses.empty();
}

std::string MemberAddresses::Objection(const Key& process, const Claim& claim) const {
  const auto found = pods_.find(process);
  if (found == pods_.end()) {
    return "";
  }
  const Pod& pod = found->second;
  const std::string its_pod = "the pod of " + controller::ToString(process.first);
  if (!claim.pod_uid.empty() && claim.pod_uid != pod.uid) {
    return "the pod of UID " + claim.pod_uid + " is not " + its_pod;
  }
  const bool compares = !claim.peer.empty() && !pod.addresses.empty();
  return compares && std::ranges::count(pod.addresses, claim.peer) == 0
             ? claim.peer + " is not the address of " + its_pod
             : "";
}

}  // namespace adamant::kube
