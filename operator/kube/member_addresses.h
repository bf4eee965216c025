#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "operator/core/actions.h"
#include "operator/kube/pod_object.h"

namespace adamant::kube {

/// Whether who joins as a process comes from that process's pod. What the API does not tell yet is
/// looked at as soon as it does: a process may be quicker than its pod's status.
/// Threads: one.
class MemberAddresses {
 public:
  /// A member's stream that did not come from its pod, and why it must end.
  struct Stranger {
    controller::ConnectionId connection = 0;
    std::string why;
  };

  /// The pods as they were last seen. Returns the streams that now prove to be of strangers.
  std::vector<Stranger> Update(const std::vector<std::shared_ptr<const PodView>>& pods);

  /// Why this stream is not let in; "" when it may come from the process's pod.
  std::string OnJoin(controller::ConnectionId connection, const controller::Join& join);

 private:
  using Key = std::pair<controller::MemberId, std::uint64_t>;  // with the generation

  [[nodiscard]] std::string Objection(const Key& process, const std::string& peer) const;

  std::map<Key, std::vector<std::string>>
      pods_;  // their addresses and their nodes'; none: not told
  std::map<Key, std::pair<controller::ConnectionId, std::string>> unchecked_;  // and the peer
};

}  // namespace adamant::kube
