#pragma once

#include <vector>

#include "operator/core/messages.h"
#include "services/data_server/core/messages.h"
#include "services/parameter_server/core/driver.h"
#include "services/parameter_server/core/messages.h"
#include "services/worker/core/messages.h"
#include "tests/simulation/messages.h"

/// From one core's messages to another's, as the edges translate by way of protobuf.
namespace adamant::simulation {

/// The push owns its bytes, as a server owns what it received.
parameter_server::Push ToParameterServer(const parameter_server::Writer& writer,
                                         const PushFrame& frame);
std::vector<parameter_server::Configuration> ConfigurationsOf(const controller::Membership& view);
std::vector<parameter_server::Holder> DeadOf(const controller::Membership& view);
controller::Proposal ToController(const parameter_server::Proposal& proposal);
controller::BucketState ToController(const parameter_server::BucketReport& report);
controller::StoredBuckets ToController(const parameter_server::StoredBuckets& stored);
controller::BucketProgress ToController(const parameter_server::BucketProgress& progress);
controller::SnapshotBucket ToController(const parameter_server::SnapshotBucket& bucket);
worker::PushReply ToWorker(std::uint64_t request,
                           const std::vector<parameter_server::ShardAck>& acks);
worker::FetchReply ToWorker(std::uint64_t request,
                            const std::vector<parameter_server::ShardValue>& values);

worker::ClusterMap ClusterMapOf(const controller::Membership& view);
worker::Lease ToWorker(const data_server::Lease& lease);
data_server::Lease ToDataServer(const worker::Lease& lease);
data_server::LeaseResult ToDataServer(const worker::LeaseResult& result);

}  // namespace adamant::simulation
