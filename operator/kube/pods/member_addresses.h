#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "operator/core/state/actions.h"
#include "operator/kube/pods/pod_view.h"

namespace adamant::kube {

/// Check that who joins as a process comes from that process's pod: by its address, and by the
/// pod's UID where it says one, as processes of later images do. What the API does not tell yet is
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

  /// Returns why this stream is not let in; "" when it may come from the process's pod.
  std::string OnJoin(controller::ConnectionId connection, const controller::Join& join);

 private:
  using Key = std::pair<controller::SlotId, std::uint64_t>;  // with the generation

  struct Pod {
    std::string uid;
    std::vector<std::string> addresses;  // and its node's; none: not told
  };
  // Where a stream comes from.
  struct Claim {
    controller::ConnectionId connection = 0;
    std::string peer;     // empty: nothing is known of its address
    std::string pod_uid;  // empty: it says none
  };

  [[nodiscard]] bool IsKnown(const Key& process) const;
  [[nodiscard]] std::string Objection(const Key& process, const Claim& claim) const;

  std::map<Key, Pod> pods_;
  std::map<Key, Claim> unchecked_;
};

}  // namespace adamant::kube
