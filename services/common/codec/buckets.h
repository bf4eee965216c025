#pragma once

#include "services/common/protocol/buckets.h"
#include "services/common/protocol/ids.h"

namespace adamant::v1 {
class Configuration;
class BucketProgress;
class BucketState;
class BucketsReady;
class FailoverTimes;
class ServerId;
class ParameterServerProgress;
class Proposal;
class Proposals;
class SnapshotBucket;
class SnapshotTaken;
class StoredBucket;
class StoredBuckets;
class TakeSnapshot;
}  // namespace adamant::v1

/// Between the values of services/common/protocol and the messages of proto/adamant/v1: Decode
/// reads a message, Encode fills an empty one. Numbers that are not finite are read as 0, and what
/// only a later version knows is left out.
///
/// Threads: any.
namespace adamant::codec {

protocol::ServerId Decode(const v1::ServerId& message);
void Encode(const protocol::ServerId& server, v1::ServerId& message);

protocol::Configuration Decode(const v1::Configuration& message);
void Encode(const protocol::Configuration& bucket, v1::Configuration& message);

protocol::Proposal Decode(const v1::Proposal& message);
void Encode(const protocol::Proposal& proposal, v1::Proposal& message);

/// Without proposals of a kind that does not exist.
protocol::Proposals Decode(const v1::Proposals& message);
void Encode(const protocol::Proposals& proposals, v1::Proposals& message);

protocol::StoredBucket Decode(const v1::StoredBucket& message);
void Encode(const protocol::StoredBucket& bucket, v1::StoredBucket& message);

protocol::StoredBuckets Decode(const v1::StoredBuckets& message);
void Encode(const protocol::StoredBuckets& stored, v1::StoredBuckets& message);

protocol::BucketProgress Decode(const v1::BucketProgress& message);
void Encode(const protocol::BucketProgress& progress, v1::BucketProgress& message);

protocol::ParameterServerProgress Decode(const v1::ParameterServerProgress& message);
void Encode(const protocol::ParameterServerProgress& progress,
            v1::ParameterServerProgress& message);

protocol::FailoverTimes Decode(const v1::FailoverTimes& message);
void Encode(const protocol::FailoverTimes& times, v1::FailoverTimes& message);

protocol::BucketState Decode(const v1::BucketState& message);
void Encode(const protocol::BucketState& state, v1::BucketState& message);

protocol::BucketsReady Decode(const v1::BucketsReady& message);
void Encode(const protocol::BucketsReady& ready, v1::BucketsReady& message);

protocol::SnapshotBucket Decode(const v1::SnapshotBucket& message);
void Encode(const protocol::SnapshotBucket& bucket, v1::SnapshotBucket& message);

protocol::SnapshotTaken Decode(const v1::SnapshotTaken& message);
void Encode(const protocol::SnapshotTaken& taken, v1::SnapshotTaken& message);

protocol::TakeSnapshot Decode(const v1::TakeSnapshot& message);
void Encode(const protocol::TakeSnapshot& take, v1::TakeSnapshot& message);

}  // namespace adamant::codec
