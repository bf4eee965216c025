#pragma once

#include "services/common/protocol/control.h"
#include "services/parameter_server/rpc/peers/peers.h"

namespace adamant::parameter_server {

/// Returns the servers to have a way to. `known` are those of the last membership: one that is not
/// listed any more may only be unable to reach the controller, so it is kept while a configuration
/// names it, unless it is dead or another process has its slot.
PeerAddresses PeersOf(const protocol::Membership& membership,
                      const ServerId& self,
                      const PeerAddresses& known);

}  // namespace adamant::parameter_server
