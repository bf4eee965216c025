#include "services/worker/core/base/messages.h"

#include <algorithm>

namespace adamant::worker {

PlacementView PlacementViewOf(const protocol::Membership& view) {
  PlacementView placement{.version = view.version, .buckets = {}, .part_owners = view.part_owner};
  for (const protocol::Configuration& bucket : view.buckets) {
    placement.buckets.push_back({.version = bucket.version,
                                 .generation = bucket.generation,
                                 .primary = bucket.primary.slot});
  }
  placement.workers = static_cast<std::uint32_t>(
      std::ranges::count(view.members, protocol::Role::kWorker, [](const protocol::Member& member) {
        return member.id.role;
      }));
  return placement;
}

}  // namespace adamant::worker
