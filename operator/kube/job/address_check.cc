#include "operator/kube/job/address_check.h"

#include <variant>

#include "services/common/base/log.h"

namespace adamant::kube {

void AddressCheck::Update(const PodViews& pods) {
  for (const MemberAddresses::Stranger& stranger : addresses_.Update(pods)) {
    Refuse(stranger.connection, stranger.why);
  }
}

bool AddressCheck::TurnsAway(const controller::Event& event) {
  const auto* received = std::get_if<controller::Received>(&event);
  const auto* join =
      received != nullptr ? std::get_if<controller::Join>(&received->message) : nullptr;
  const std::string why = join != nullptr ? addresses_.OnJoin(received->connection, *join) : "";
  if (!why.empty()) {
    Refuse(received->connection, why);
  }
  return !why.empty();
}

void AddressCheck::Refuse(controller::ConnectionId connection, const std::string& why) {
  LogWarning("turns away a stranger", {{"job", ToString(job_.key)}, {"why", why}});
  control_.Send({.connection = connection, .message = controller::Refused{why}});
  control_.Close(connection);
}

}  // namespace adamant::kube
