#pragma once

#include <vector>

#include "operator/core/state/messages.h"
#include "services/parameter_server/core/driver.h"
#include "services/parameter_server/core/replication/messages.h"

/// From the controller's messages to a parameter server's and back, as the edges translate by way
/// of protobuf.
namespace adamant::simulation {

std::vector<parameter_server::Configuration> ConfigurationsOf(const controller::Membership& view);
std::vector<parameter_server::Holder> DeadOf(const controller::Membership& view);
controller::Proposal ToController(const parameter_server::Proposal& proposal);
controller::BucketState ToController(const parameter_server::BucketReport& report);
controller::StoredBuckets ToController(const parameter_server::StoredBuckets& stored);
controller::BucketProgress ToController(const parameter_server::BucketProgress& progress);
controller::SnapshotBucket ToController(const parameter_server::SnapshotBucket& bucket);

}  // namespace adamant::simulation
