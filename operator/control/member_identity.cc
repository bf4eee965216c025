#include "operator/control/member_identity.h"

#include <optional>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/security/peer_identity.h"

namespace adamant::control {
namespace {

std::optional<security::Role> RoleOf(const v1::Join& join) {
  switch (join.role()) {
    case v1::DATA_SERVER:
      return security::Role::kDataServer;
    case v1::PARAMETER_SERVER:
      return security::Role::kParameterServer;
    case v1::WORKER:
      return security::Role::kWorker;
    default:
      return std::nullopt;
  }
}

}  // namespace

Mismatch Compare(const v1::Join& join, const security::PeerIdentity& identity) {
  if (join.job() != identity.job_uid) {
    return Mismatch::kJob;
  }
  if (RoleOf(join) != identity.role) {
    return Mismatch::kRole;
  }
  if (join.slot() != identity.slot) {
    return Mismatch::kSlot;
  }
  return join.generation() != identity.generation ? Mismatch::kGeneration : Mismatch::kNone;
}

std::string FieldName(Mismatch mismatch) {
  switch (mismatch) {
    case Mismatch::kNone:
      return "";
    case Mismatch::kJob:
      return "job";
    case Mismatch::kRole:
      return "role";
    case Mismatch::kSlot:
      return "slot";
    case Mismatch::kGeneration:
      return "generation";
  }
  return "";
}

}  // namespace adamant::control
