#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "services/common/rpc/frame.h"
#include "services/parameter_server/rpc/core_gate.h"
#include "services/parameter_server/rpc/traffic_metrics.h"

namespace adamant::parameter_server {

/// Largest frame taken or sent; workers cut larger pushes and fetches into several.
constexpr std::uint64_t kMaxExchangeBytes = std::uint64_t{256} << 20;

/// Serves one stream of "/adamant.v1.ParameterServer/Exchange" until it ends: each frame is handled
/// and answered before the next, so answers come in the order of the requests, and a fetch sees
/// what was pushed before it. A push stays in the memory that it was received in, for as long as
/// the core needs it. Threads: any; blocks. Errors: Unavailable while the gate is closed (the
/// client comes again); InvalidArgument for a client that breaks the protocol; Cancelled when the
/// client left while a push was under way.
absl::Status ServeExchange(CoreGate& gate, const TrafficMetrics& metrics, rpc::FrameStream& stream);

}  // namespace adamant::parameter_server
