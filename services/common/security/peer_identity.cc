#include "services/common/security/peer_identity.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "services/common/base/status_macros.h"

namespace adamant::security {
namespace {

constexpr std::string_view kScheme = "spiffe://";
constexpr std::pair<Role, std::string_view> kNames[] = {
    {Role::kOperator, "operator"},
    {Role::kParameterServer, "parameter-server"},
    {Role::kDataServer, "data-server"},
    {Role::kWorker, "worker"},
    {Role::kExporter, "exporter"},
};

constexpr std::size_t kMostTrustDomainBytes = 253;
constexpr std::size_t kMostLabelBytes = 63;

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// A label of DNS, as names of namespaces and UIDs of objects are.
bool IsLabel(std::string_view text) {
  return !text.empty() && text.size() <= kMostLabelBytes && IsLowerOrDigit(text.front()) &&
         IsLowerOrDigit(text.back()) &&
         std::ranges::all_of(text, [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t end = 0;
  while ((end = text.find(separator)) != std::string_view::npos) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

bool IsTrustDomain(std::string_view text) {
  return text.size() <= kMostTrustDomainBytes && std::ranges::all_of(Split(text, '.'), IsLabel);
}

// A decimal number as it is written, without leading zeros.
template <class Number>
bool ReadNumber(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() &&
         (text.size() == 1 || text.front() != '0');
}

absl::Status NotAnIdentity() {
  return absl::InvalidArgumentError("not the identity of a process of ours");
}

absl::Status CheckSlot(const PeerIdentity& identity) {
  if (identity.role == Role::kOperator) {
    return identity.job_uid.empty() && identity.slot == 0 && identity.generation == 0
               ? absl::OkStatus()
               : absl::InvalidArgumentError("identity: an operator has no job, slot or generation");
  }
  if (!IsLabel(identity.job_uid)) {
    return absl::InvalidArgumentError("identity: not the UID of a job");
  }
  return identity.role == Role::kExporter && identity.slot != 0
             ? absl::InvalidArgumentError("identity: an exporter has slot 0")
             : absl::OkStatus();
}

}  // namespace

std::string_view RoleName(Role role) {
  return std::ranges::find(kNames, role, &std::pair<Role, std::string_view>::first)->second;
}

std::optional<Role> RoleNamed(std::string_view name) {
  const auto* const named =
      std::ranges::find(kNames, name, &std::pair<Role, std::string_view>::second);
  return named == std::end(kNames) ? std::nullopt : std::optional<Role>(named->first);
}

std::string FormatIdentity(const PeerIdentity& identity) {
  std::string uri(kScheme);
  uri += identity.trust_domain + "/ns/" + identity.name_space + '/';
  if (identity.role != Role::kOperator) {
    uri += "job/" + identity.job_uid + '/';
  }
  uri += RoleName(identity.role);
  if (identity.role != Role::kOperator) {
    uri += '/' + std::to_string(identity.slot) + '/' + std::to_string(identity.generation);
  }
  return uri;
}

absl::StatusOr<PeerIdentity> ParseIdentity(std::string_view uri) {
  if (uri.size() > kMostIdentityBytes || !uri.starts_with(kScheme)) {
    return NotAnIdentity();
  }
  const std::vector<std::string_view> parts = Split(uri.substr(kScheme.size()), '/');
  const bool is_operator = parts.size() == 4;  // trust domain, "ns", namespace, role
  if ((!is_operator && parts.size() != 8) || parts[1] != "ns") {
    return NotAnIdentity();
  }
  const std::optional<Role> role = RoleNamed(parts[is_operator ? 3 : 5]);
  if (!role || (*role == Role::kOperator) != is_operator) {
    return NotAnIdentity();
  }
  PeerIdentity identity{.trust_domain = std::string(parts[0]),
                        .name_space = std::string(parts[2]),
                        .role = *role,
                        .job_uid = ""};
  if (!is_operator) {
    identity.job_uid = std::string(parts[4]);
    if (parts[3] != "job" || !ReadNumber(parts[6], identity.slot) ||
        !ReadNumber(parts[7], identity.generation)) {
      return NotAnIdentity();
    }
  }
  return CheckIdentity(identity).ok() ? absl::StatusOr<PeerIdentity>(std::move(identity))
                                      : NotAnIdentity();
}

absl::Status CheckIdentity(const PeerIdentity& identity) {
  if (!IsTrustDomain(identity.trust_domain)) {
    return absl::InvalidArgumentError("identity: not a trust domain");
  }
  if (!IsLabel(identity.name_space)) {
    return absl::InvalidArgumentError("identity: not a namespace");
  }
  return CheckSlot(identity);
}

}  // namespace adamant::security
