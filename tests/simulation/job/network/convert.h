#pragma once

#include <vector>

#include "services/parameter_server/core/updates/messages.h"
#include "services/worker/core/base/messages.h"
#include "tests/simulation/job/network/messages.h"

/// From one core's messages to another's, as the edges translate by way of protobuf.
namespace adamant::simulation {

/// The push owns its bytes, as a server owns what it received.
parameter_server::Push ToParameterServer(const parameter_server::WorkerId& writer,
                                         const PushFrame& frame);
worker::PushReply ToWorker(std::uint64_t request,
                           const std::vector<parameter_server::ShardAck>& acks);
worker::FetchReply ToWorker(std::uint64_t request,
                            const std::vector<parameter_server::ShardValue>& values);

}  // namespace adamant::simulation
