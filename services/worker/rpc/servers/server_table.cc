#include "services/worker/rpc/servers/server_table.h"

namespace adamant::worker {

std::vector<ServerAddress> ServersOf(const protocol::Membership& view, protocol::Role role) {
  std::vector<ServerAddress> places;
  for (const protocol::Member& member : view.members) {
    if (member.id.role == role) {
      places.push_back(
          {.slot = member.id.slot, .address = member.address, .incarnation = member.incarnation});
    }
  }
  return places;
}

}  // namespace adamant::worker
