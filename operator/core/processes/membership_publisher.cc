#include "operator/core/processes/membership_publisher.h"

#include <utility>

namespace adamant::controller {

Membership MembershipPublisher::View() const {
  // Versions rise across restarts of the controller, because its term does.
  Membership view{.version = (state_.term << 32) | versions_,
                  .members = {},
                  .buckets = state_.buckets,
                  .part_owner = state_.part_owner,
                  .dead = state_.dead};
  for (const ProcessTable::Slot& slot : processes_.slots()) {
    if (slot.liveness == ProcessTable::Liveness::kRunning) {
      view.members.push_back({.id = slot.id,
                              .incarnation = processes_.IncarnationOf(slot.id),
                              .address = slot.address,
                              .replication_address = slot.replication_address,
                              .generation = slot.generation});
    }
  }
  return view;
}

void MembershipPublisher::PublishChanges() {
  if (changed_) {
    return Publish();
  }
  for (const std::uint32_t slot : std::exchange(outdated_, {})) {
    processes_.SendTo({Role::kParameterServer, slot}, View());
  }
}

void MembershipPublisher::Publish() {
  changed_ = false;
  outdated_.clear();
  ++versions_;
  const Membership view = View();
  for (const Member& member : view.members) {
    processes_.SendTo(member.id, view);
  }
}

}  // namespace adamant::controller
