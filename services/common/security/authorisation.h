#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "services/common/security/peer_identity.h"

// What a caller may do. Whatever is not said here is forbidden.
namespace adamant::security {

/// One method, and the roles that may call it.
struct MethodRule {
  std::string_view method;  ///< as gRPC names it: "/adamant.v1.DataServer/Work"
  std::span<const Role> roles;
};

/// All rules, by method.
std::span<const MethodRule> MethodRules();

/// Returns whether `role` may call `method`; a method without a rule nobody may.
bool IsAllowed(std::string_view method, Role role);

/// Checks that a call may go on: by method and role, and at a process of a job by job.
/// Errors: PermissionDenied, naming the method and who asks.
absl::Status Authorise(std::string_view method,
                       const PeerIdentity& caller,
                       const PeerIdentity& server);

/// Checks that a caller is of the slot that its first message names. `caller`: null: nobody knows
/// who it is, as there is no TLS, and may be of any.
/// Errors: PermissionDenied, naming both.
absl::Status CheckNamedSlot(const PeerIdentity* caller, std::uint32_t slot);

/// The rules as a table of Markdown, as docs/security.md has it.
std::string FormatRules();

}  // namespace adamant::security
