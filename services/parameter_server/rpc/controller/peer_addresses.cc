#include "services/parameter_server/rpc/controller/peer_addresses.h"

#include <algorithm>
#include <cstdint>
#include <set>

namespace adamant::parameter_server {
namespace {

// Holders that configurations name.
std::set<ServerId> NamedIn(const protocol::Membership& membership) {
  std::set<ServerId> named;
  for (const protocol::Configuration& bucket : membership.buckets) {
    named.insert(bucket.replicas.begin(), bucket.replicas.end());
    if (bucket.learner) {
      named.insert(*bucket.learner);
    }
  }
  return named;
}

}  // namespace

PeerAddresses PeersOf(const protocol::Membership& membership,
                      const ServerId& self,
                      const PeerAddresses& known) {
  PeerAddresses peers;
  std::set<std::uint32_t> slots;
  for (const protocol::Member& member : membership.members) {
    if (member.id.role == protocol::Role::kParameterServer && !member.replication_address.empty()) {
      slots.insert(member.id.slot);
      peers[{member.id.slot, member.incarnation}] = member.replication_address;
    }
  }
  const std::set<ServerId> named = NamedIn(membership);
  for (const auto& [server, address] : known) {
    if (named.contains(server) && !slots.contains(server.slot) &&
        std::ranges::find(membership.dead, server) == membership.dead.end()) {
      peers[server] = address;
    }
  }
  peers.erase(self);
  return peers;
}

}  // namespace adamant::parameter_server
