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

std::string ToString(MemberId id) {
  return std::string(RoleName(id.role)) + "-" + std::to_string(id.slot);
}

std::string ToString(Holder holder) {
  return ToString(MemberId{Role::kParameterServer, holder.slot}) + "#" +
         std::to_string(holder.incarnation);
}

}  // namespace adamant::protocol
