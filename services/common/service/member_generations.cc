#include "services/common/service/member_generations.h"

#include <algorithm>
#include <string>

#include "services/common/base/status_macros.h"
#include "services/common/protocol/control.h"
#include "services/common/security/authorisation.h"

namespace adamant::service {
namespace {

using security::PeerIdentity;

security::Role RoleOf(protocol::Role role) {
  switch (role) {
    case protocol::Role::kDataServer:
      return security::Role::kDataServer;
    case protocol::Role::kParameterServer:
      return security::Role::kParameterServer;
    case protocol::Role::kWorker:
      return security::Role::kWorker;
  }
  return security::Role::kWorker;
}

absl::Status Denied(const PeerIdentity& caller, const std::string& why) {
  return absl::PermissionDeniedError(security::FormatIdentity(caller) + ' ' + why);
}

}  // namespace

void MemberGenerations::Set(const Member& member) {
  const MutexLock lock(mutex_);
  Newest& newest = members_[{member.role, member.slot}];
  if (member.incarnation > newest.incarnation) {
    newest = {.incarnation = member.incarnation, .generation = member.generation};
  } else if (member.incarnation == newest.incarnation) {
    newest.generation = std::max(newest.generation, member.generation);
  }
}

void MemberGenerations::SetAll(const protocol::Membership& membership) {
  for (const protocol::Member& member : membership.members) {
    Set({.role = RoleOf(member.id.role),
         .slot = member.id.slot,
         .incarnation = member.incarnation,
         .generation = member.generation});
  }
}

// All 0: nothing is known of its slot.
MemberGenerations::Newest MemberGenerations::Find(const PeerIdentity& caller) const {
  const MutexLock lock(mutex_);
  const auto found = members_.find({caller.role, caller.slot});
  return found == members_.end() ? Newest() : found->second;
}

absl::Status MemberGenerations::CheckHello(const PeerIdentity* caller,
                                           std::uint32_t slot,
                                           Incarnation incarnation) const {
  ADAMANT_RETURN_IF_ERROR(security::CheckNamedSlot(caller, slot));
  if (caller == nullptr) {
    return absl::OkStatus();
  }
  const Newest newest = Find(*caller);
  const bool is_known = newest.incarnation != 0;
  if (is_known && (newest.generation == 0 || incarnation < newest.incarnation)) {
    return absl::OkStatus();
  }
  if (incarnation == newest.incarnation) {
    return caller->generation == newest.generation
               ? absl::OkStatus()
               : Denied(*caller, "speaks for incarnation " + std::to_string(incarnation));
  }
  ADAMANT_RETURN_IF_ERROR(CheckPresent(caller));
  return absl::UnavailableError("the controller has not said yet who is incarnation " +
                                std::to_string(incarnation) + " of " +
                                security::FormatIdentity(*caller));
}

absl::Status MemberGenerations::CheckPresent(const PeerIdentity* caller) const {
  return caller == nullptr || caller->generation >= Find(*caller).generation
             ? absl::OkStatus()
             : Denied(*caller, "was replaced");
}

}  // namespace adamant::service
