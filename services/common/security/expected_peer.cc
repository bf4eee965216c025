#include "services/common/security/expected_peer.h"

#include <utility>

namespace adamant::security {
namespace {

bool IsExpected(const ExpectedPeer& expected, const PeerIdentity& peer) {
  if (peer.trust_domain != expected.trust_domain || peer.role != expected.role) {
    return false;
  }
  return peer.role == Role::kOperator ||
         (peer.name_space == expected.name_space && peer.job_uid == expected.job_uid &&
          peer.slot == expected.slot.value_or(peer.slot));
}

std::string Describe(const ExpectedPeer& expected) {
  std::string text(RoleName(expected.role));
  if (expected.slot) {
    text += '-' + std::to_string(*expected.slot);
  }
  return expected.role == Role::kOperator
             ? text + " of " + expected.trust_domain
             : text + " of job " + expected.job_uid + " in namespace " + expected.name_space;
}

}  // namespace

ExpectedPeer ExpectOperator(std::string trust_domain) {
  return {.trust_domain = std::move(trust_domain), .role = Role::kOperator};
}

ExpectedPeer ExpectMember(const PeerIdentity& own, Role role, std::optional<std::uint32_t> slot) {
  return {.trust_domain = own.trust_domain,
          .role = role,
          .name_space = own.name_space,
          .job_uid = own.job_uid,
          .slot = slot};
}

absl::Status CheckPeer(const ExpectedPeer& expected, std::string_view uri) {
  const absl::StatusOr<PeerIdentity> peer = ParseIdentity(uri);
  if (peer.ok() && IsExpected(expected, *peer)) {
    return absl::OkStatus();
  }
  return absl::UnauthenticatedError(
      "expected " + Describe(expected) + ", not " +
      (peer.ok() ? std::string(uri) : "somebody without an identity"));
}

}  // namespace adamant::security
