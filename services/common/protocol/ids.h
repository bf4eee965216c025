#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

/// What the processes of a job say to each other, as plain values: proto/adamant/v1 without
/// Protobuf. Comments of the proto files hold here too; services/common/codec translates.
namespace adamant::protocol {

enum class Role : std::uint8_t { kDataServer = 1, kParameterServer = 2, kWorker = 3 };

/// A position in the job that one process at a time fills.
struct MemberId {
  Role role = Role::kWorker;
  std::uint32_t slot = 0;

  auto operator<=>(const MemberId&) const = default;
};

/// One process of a parameter server.
struct Holder {
  std::uint32_t slot = 0;
  std::uint64_t incarnation = 0;

  auto operator<=>(const Holder&) const = default;
};

/// One process of a worker: a later one on the same slot has a higher incarnation.
struct WorkerId {
  std::uint32_t slot = 0;
  std::uint64_t incarnation = 0;

  auto operator<=>(const WorkerId&) const = default;
};

/// Returns "data-server", "parameter-server" or "worker".
std::string_view RoleName(Role role);

/// Returns "worker-1".
std::string ToString(MemberId id);

/// Returns "parameter-server-1#4".
std::string ToString(Holder holder);

}  // namespace adamant::protocol
