#include "services/common/protocol/ids.h"

namespace adamant::protocol {

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kDataServer:
      return "data-server";
    case Role::kParameterServer:
      return "parameter-server";
    case Role::kWorker:
      return "worker";
  }
  return "unknown";
}

std::string ToString(SlotId id) {
  return std::string(RoleName(id.role)) + "-" + std::to_string(id.slot);
}

std::string ToString(ServerId server) {
  return ToString(SlotId{Role::kParameterServer, server.slot}) + "#" +
         std::to_string(server.incarnation);
}

}  // namespace adamant::protocol
