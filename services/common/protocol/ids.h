#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "services/common/base/ids.h"

/// Messages between the processes of a job, as plain values: proto/adamant/v1 without Protobuf.
/// Comments of the proto files hold here too; services/common/codec translates.
namespace adamant::protocol {

enum class Role : std::uint8_t { kDataServer = 1, kParameterServer = 2, kWorker = 3 };

/// A position in the job that one process at a time fills.
struct SlotId {
  Role role = Role::kWorker;
  std::uint32_t slot = 0;

  auto operator<=>(const SlotId&) const = default;
};

/// One process of a parameter server.
struct ServerId {
  std::uint32_t slot = 0;
  Incarnation incarnation = 0;

  auto operator<=>(const ServerId&) const = default;
};

/// One process of a worker: a later one on the same slot has a higher incarnation.
struct WorkerId {
  std::uint32_t slot = 0;
  Incarnation incarnation = 0;

  auto operator<=>(const WorkerId&) const = default;
};

/// Returns "data-server", "parameter-server" or "worker".
std::string_view RoleName(Role role);

/// Returns "worker-1".
std::string ToString(SlotId id);

/// Returns "parameter-server-1#4".
std::string ToString(ServerId server);

}  // namespace adamant::protocol
