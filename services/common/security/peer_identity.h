#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace adamant::security {

/// Kinds of processes that have identities.
enum class Role : std::uint8_t {
  kOperator,         ///< controller of a cluster's jobs: of no job itself
  kParameterServer,  ///< of a job, as are those below
  kDataServer,
  kWorker,
  kExporter,  ///< writes the model of a job to its output volume
};

/// All of them, in the order of the table of docs/security.md.
inline constexpr Role kRoles[] = {
    Role::kOperator, Role::kParameterServer, Role::kDataServer, Role::kWorker, Role::kExporter};

/// Returns the name of a role in identities and logs: "parameter-server".
std::string_view RoleName(Role role);

/// Returns the role of this name, or nothing.
std::optional<Role> RoleNamed(std::string_view name);

/// Name of a process, as its certificate says.
struct PeerIdentity {
  std::string trust_domain;      ///< whose authority signs: "adamant.local"
  std::string name_space;        ///< of Kubernetes, where the process runs
  Role role = Role::kWorker;     ///< of the process
  std::string job_uid;           ///< UID of the TrainingJob; empty: an operator's
  std::uint32_t slot = 0;        ///< 0-based, within the role; 0: an operator's, an exporter's
  std::uint64_t generation = 0;  ///< of the slot; an operator's: 0

  bool operator==(const PeerIdentity&) const = default;
};

/// The most bytes of an identity as text.
inline constexpr std::size_t kMostIdentityBytes = 512;

/// Returns the SPIFFE ID of an identity that CheckIdentity lets pass:
/// "spiffe://TRUST_DOMAIN/ns/NAMESPACE/job/JOB_UID/ROLE/SLOT/GENERATION", an operator's
/// "spiffe://TRUST_DOMAIN/ns/NAMESPACE/operator".
std::string FormatIdentity(const PeerIdentity& identity);

/// Reads what FormatIdentity writes, and no other spelling of it.
/// Errors: InvalidArgument, without the text: it is from outside.
absl::StatusOr<PeerIdentity> ParseIdentity(std::string_view uri);

/// Checks that ParseIdentity would read what FormatIdentity writes of it.
/// Errors: InvalidArgument, naming the field.
absl::Status CheckIdentity(const PeerIdentity& identity);

}  // namespace adamant::security
