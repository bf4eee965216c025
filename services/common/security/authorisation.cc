#include "services/common/security/authorisation.h"

#include <algorithm>

namespace adamant::security {
namespace {

constexpr Role kMembers[] = {Role::kParameterServer, Role::kDataServer, Role::kWorker};
constexpr Role kOperators[] = {Role::kOperator};
constexpr Role kParameterServers[] = {Role::kParameterServer};
constexpr Role kDataServers[] = {Role::kDataServer};
constexpr Role kWorkers[] = {Role::kWorker};
constexpr Role kReadersOfWeights[] = {Role::kWorker, Role::kExporter};

constexpr MethodRule kRules[] = {
    {"/adamant.v1.Controller/Attend", kMembers},
    {"/adamant.v1.Controller/GetStatus", kOperators},
    {"/adamant.v1.Controller/GetTerm", kMembers},
    {"/adamant.v1.DataServer/Work", kWorkers},
    {"/adamant.v1.ParameterServer/Exchange", kReadersOfWeights},
    {"/adamant.v1.ParameterServer/GetRecord", kDataServers},
    {"/adamant.v1.ParameterServer/PutRecord", kDataServers},
    {"/adamant.v1.Replication/Deliver", kParameterServers},
    {"/grpc.health.v1.Health/Check", kRoles},
};

absl::Status Denied(std::string_view method, const PeerIdentity& caller, std::string_view why) {
  return absl::PermissionDeniedError(std::string(method.substr(0, kMostIdentityBytes)) + ": " +
                                     FormatIdentity(caller) + ' ' + std::string(why));
}

}  // namespace

std::span<const MethodRule> MethodRules() { return kRules; }

bool IsAllowed(std::string_view method, Role role) {
  const auto* const rule = std::ranges::find(kRules, method, &MethodRule::method);
  return rule != std::end(kRules) && std::ranges::find(rule->roles, role) != rule->roles.end();
}

absl::Status Authorise(std::string_view method,
                       const PeerIdentity& caller,
                       const PeerIdentity& server) {
  if (caller.trust_domain != server.trust_domain) {
    return Denied(method, caller, "is of another trust domain");
  }
  if (!IsAllowed(method, caller.role)) {
    return Denied(method, caller, "may not call it");
  }
  const bool has_job = server.role != Role::kOperator && caller.role != Role::kOperator;
  const bool is_its = caller.job_uid == server.job_uid && caller.name_space == server.name_space;
  return has_job && !is_its ? Denied(method, caller, "is of another job") : absl::OkStatus();
}

absl::Status CheckNamedSlot(const PeerIdentity* caller, std::uint32_t slot) {
  return caller == nullptr || caller->slot == slot
             ? absl::OkStatus()
             : absl::PermissionDeniedError(FormatIdentity(*caller) + " speaks for slot " +
                                           std::to_string(slot));
}

std::string FormatRules() {
  std::string table = "| method |";
  std::string line = "|---|";
  for (const Role role : kRoles) {
    table += ' ' + std::string(RoleName(role)) + " |";
    line += "---|";
  }
  table += '\n' + line + '\n';
  for (const MethodRule& rule : kRules) {
    table += "| `" + std::string(rule.method) + "` |";
    for (const Role role : kRoles) {
      table += IsAllowed(rule.method, role) ? " yes |" : " |";
    }
    table += '\n';
  }
  return table;
}

}  // namespace adamant::security
