#pragma once

#include <cstdint>

#include "services/common/base/ids.h"
#include "services/parameter_server/core/serving/parameter_server.h"

/// What the checks must see of a server that it shows to nobody. What ships has no doors for tests:
/// these go in by the names of private members, which explicit instantiations may use.
/// Threads: none may be at work in the server.
namespace adamant::replication_simulation {

namespace ps = parameter_server;

/// A bucket with its replica.
ps::Bucket& BucketAt(ps::ParameterServer& server, BucketId bucket);
const ps::Bucket& BucketAt(const ps::ParameterServer& server, BucketId bucket);

/// What a shard holds once all that has queued is applied; leaves the queue as it is.
ps::ShardContent ContentOf(const ps::LiveShard& shard);

/// The version of that.
std::uint64_t VersionOf(const ps::LiveShard& shard);

/// What the replicas ask for is done there.
ps::ReplicaHost& HostOf(ps::ParameterServer& server);

/// From now on all replicas, which must be fresh, ask this host, which passes on to HostOf(server).
void Interpose(ps::ParameterServer& server, ps::ReplicaHost& host);

/// Forgets what a replica has prepared and not committed: a fault on purpose.
void CutLog(ps::Replica& replica);

}  // namespace adamant::replication_simulation
