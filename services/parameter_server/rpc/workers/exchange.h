#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "services/common/rpc/frame.h"
#include "services/common/service/member_generations.h"
#include "services/parameter_server/rpc/gate/core_gate.h"
#include "services/parameter_server/rpc/workers/traffic_metrics.h"

namespace adamant::parameter_server {

/// Largest frame taken or sent; workers cut larger pushes and fetches into several.
constexpr std::uint64_t kMaxExchangeBytes = std::uint64_t{256} << 20;

/// The job that a stream's first header is for; "0" of what is no hello.
std::string JobOfExchange(std::string_view header);

/// Serves one stream of "/adamant.v1.ParameterServer/Exchange" until it ends. Requests are taken in
/// the order in which they come; a push is answered when it is settled, so that one which waits for
/// a bucket's replicas holds no other push up, but a fetch comes after the pushes before it, to
/// these shards, or says after a while that they are not ready. Without answers may be pushes of
/// kMaxExchangeBytes; the next ones wait. A push stays in the memory that it was received in, for
/// as long as the core needs it.
/// Threads: any; blocks. `metrics` must outlive the core.
/// Errors: Unavailable while the gate is closed, or `members` has yet to hear of the client (which
/// comes again); InvalidArgument for a
/// client that breaks the protocol; PermissionDenied for one whose hello is not that of its
/// certificate; Cancelled when the client left.
absl::Status ServeExchange(CoreGate& gate,
                           const service::MemberGenerations& members,
                           const TrafficMetrics& metrics,
                           rpc::FrameStream& stream);

}  // namespace adamant::parameter_server
