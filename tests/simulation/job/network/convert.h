#pragma once

#include <vector>

#include "operator/core/state/messages.h"
#include "services/data_server/core/messages.h"
#include "services/parameter_server/core/updates/messages.h"
#include "services/worker/core/messages.h"
#include "tests/simulation/job/network/messages.h"

/// From one core's messages to another's, as the edges translate by way of protobuf.
namespace adamant::simulation {

/// The push owns its bytes, as a server owns what it received.
parameter_server::Push ToParameterServer(const parameter_server::Writer& writer,
                                         const PushFrame& frame);
worker::PushReply ToWorker(std::uint64_t request,
                           const std::vector<parameter_server::ShardAck>& acks);
worker::FetchReply ToWorker(std::uint64_t request,
                            const std::vector<parameter_server::ShardValue>& values);

worker::ClusterMap ClusterMapOf(const controller::Membership& view);
worker::Lease ToWorker(const data_server::Lease& lease);
data_server::Lease ToDataServer(const worker::Lease& lease);
data_server::LeaseResult ToDataServer(const worker::LeaseResult& result);

}  // namespace adamant::simulation
