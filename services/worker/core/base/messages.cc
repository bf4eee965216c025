#include "services/worker/core/base/messages.h"

#include <algorithm>

namespace adamant::worker {

ClusterMap ClusterMapOf(const protocol::Membership& view) {
  ClusterMap map{.version = view.version, .buckets = {}, .part_owners = view.part_owner};
  for (const protocol::Configuration& bucket : view.buckets) {
    map.buckets.push_back({.version = bucket.version,
                           .generation = bucket.generation,
                           .primary = bucket.primary.slot});
  }
  map.workers = static_cast<std::uint32_t>(
      std::ranges::count(view.members, protocol::Role::kWorker, [](const protocol::Member& member) {
        return member.id.role;
      }));
  return map;
}

}  // namespace adamant::worker
