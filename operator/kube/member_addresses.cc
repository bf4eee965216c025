#include "operator/kube/member_addresses.h"

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
    if (view->export_snapshot == 0) {
      pods_[{view->pod.process.id, view->pod.process.generation}] = view->addresses;
    }
  }
  std::vector<Stranger> strangers;
  std::erase_if(unchecked_, [&](const auto& entry) {
    const auto& [process, stream] = entry;
    const auto pod = pods_.find(process);
    if (pod == pods_.end() || pod->second.empty()) {
      return false;
    }
    if (std::string why = Objection(process, stream.second); !why.empty()) {
      strangers.push_back({.connection = stream.first, .why = std::move(why)});
    }
    return true;
  });
  return strangers;
}

std::string MemberAddresses::OnJoin(controller::ConnectionId connection,
                                    const controller::Join& join) {
  if (join.peer.empty() || IsLoopback(join.peer)) {
    return "";
  }
  const Key process{join.id, join.generation};
  std::string why = Objection(process, join.peer);
  if (why.empty()) {
    unchecked_[process] = {connection, join.peer};
  }
  return why;
}

std::string MemberAddresses::Objection(const Key& process, const std::string& peer) const {
  const auto pod = pods_.find(process);
  if (pod == pods_.end() || pod->second.empty() || std::ranges::count(pod->second, peer) > 0) {
    return "";
  }
  return peer + " is not the address of the pod of " + controller::ToString(process.first);
}

}  // namespace adamant::kube
