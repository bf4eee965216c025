#pragma once

#include <span>
#include <vector>

#include "services/parameter_server/core/driver.h"
#include "services/parameter_server/rpc/peers/peers.h"

namespace adamant::v1 {
class BucketsReady;
class Membership;
class ParameterServerProgress;
class Proposals;
class SnapshotTaken;
class StoredBuckets;
}  // namespace adamant::v1

// The replication part of control.proto as plain values, and back.
namespace adamant::parameter_server {

std::vector<Configuration> ConfigurationsOf(const v1::Membership& membership);
std::vector<Holder> DeadOf(const v1::Membership& membership);

/// The servers to have a way to. `known` are those of the last membership: one that is not listed
/// any more may only be unable to reach the controller, so it is kept while a record names it,
/// unless it is dead or another process has its slot.
PeerAddresses PeersOf(const v1::Membership& membership,
                      const Holder& self,
                      const PeerAddresses& known);

/// Whether the bucket was taken over from another server.
bool TookOver(const BucketReport& report);

void EncodeProposals(std::span<const Proposal> proposals, v1::Proposals& out);
void EncodeReports(std::span<const BucketReport> reports, v1::BucketsReady& out);

void EncodeStored(const StoredBuckets& stored, v1::StoredBuckets& out);
void EncodeProgress(std::span<const BucketProgress> progress, v1::ParameterServerProgress& out);
void EncodeSnapshot(std::span<const SnapshotBucket> buckets, v1::SnapshotTaken& out);

}  // namespace adamant::parameter_server
