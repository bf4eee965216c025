#include "services/data_server/core/messages.h"

namespace adamant::data_server {

WorkView WorkViewOf(const protocol::Membership& membership) {
  WorkView view{.workers = {}, .part_owner = membership.part_owner};
  for (const protocol::Member& member : membership.members) {
    if (member.id.role == protocol::Role::kWorker) {
      view.workers.push_back({.slot = member.id.slot, .incarnation = member.incarnation});
    }
  }
  return view;
}

}  // namespace adamant::data_server
