#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "services/common/security/peer_identity.h"

namespace adamant::security {

/// Process that a client means to talk to.
struct ExpectedPeer {
  std::string trust_domain;
  Role role = Role::kOperator;
  std::string name_space = {};  ///< an operator's is not asked for
  std::string job_uid = {};
  std::optional<std::uint32_t> slot = {};  ///< none: any
};

/// Returns an operator of a trust domain, as who is expected.
ExpectedPeer ExpectOperator(std::string trust_domain);

/// Returns a process of the same job as `own`, as who is expected.
ExpectedPeer ExpectMember(const PeerIdentity& own,
                          Role role,
                          std::optional<std::uint32_t> slot = std::nullopt);

/// Checks that the identity `uri` is that of the process expected.
/// Errors: Unauthenticated, naming what is expected, and who answers if it has an identity.
absl::Status CheckPeer(const ExpectedPeer& expected, std::string_view uri);

}  // namespace adamant::security
