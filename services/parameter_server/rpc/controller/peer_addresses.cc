#include "services/parameter_server/rpc/controller/peer_addresses.h"

#include <algorithm>
#include <cstdint>
#include <set>

namespace adamant::parameter_server {
namespace {

// Holders that records name.
std::set<Holder> NamedIn(const protocol::Membership& membership) {
  std::set<Holder> named;
  for (const protocol::Bucket& bucket : membership.buckets) {
    named.insert(bucket.members.begin(), bucket.members.end());
    if (bucket.learner) {
      named.insert(*bucket.learner);
    }
  }
  return named;
}

}  // namespace

PeerAddresses PeersOf(const protocol::Membership& membership,
                      const Holder& self,
                      const PeerAddresses& known) {
  PeerAddresses peers;
  std::set<std::uint32_t> slots;
  for (const protocol::Member& member : membership.members) {
    if (member.id.role == protocol::Role::kParameterServer && !member.replication_address.empty()) {
      slots.insert(member.id.slot);
      peers[{member.id.slot, member.incarnation}] = member.replication_address;
    }
  }
  const std::set<Holder> named = NamedIn(membership);
  for (const auto& [holder, address] : known) {
    if (named.contains(holder) && !slots.contains(holder.slot) &&
        std::ranges::find(membership.dead, holder) == membership.dead.end()) {
      peers[holder] = address;
    }
  }
  peers.erase(self);
  return peers;
}

}  // namespace adamant::parameter_server
