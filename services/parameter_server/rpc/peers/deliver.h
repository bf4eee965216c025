#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "services/common/rpc/frame.h"
#include "services/common/service/member_generations.h"
#include "services/parameter_server/rpc/gate/core_gate.h"
#include "services/parameter_server/rpc/peers/peer_metrics.h"

namespace adamant::parameter_server {

/// Largest message batch taken: a push that is one entry, and its header.
constexpr std::uint64_t kMaxMessageBatchBytes = std::uint64_t{320} << 20;

/// The job that a stream's first header is for; "0" of what is no hello.
std::string JobOfDeliver(std::string_view header);

/// Serves one stream of "/adamant.v1.Replication/Deliver" until it ends: hands what a peer sends to
/// the core, in order.
/// Threads: any; blocks.
/// Errors: Unavailable while the gate is closed, or `members` has yet to hear of the peer (which
/// comes again); InvalidArgument for a peer that breaks the protocol; PermissionDenied for one
/// whose hello is not that of its certificate.
absl::Status ServeDeliver(CoreGate& gate,
                          const service::MemberGenerations& members,
                          const PeerMetrics& metrics,
                          rpc::FrameStream& stream);

}  // namespace adamant::parameter_server
