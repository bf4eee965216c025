#pragma once

#include <cstdint>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/optimiser/optimiser.h"
#include "services/common/protocol/control.h"
#include "services/common/protocol/updates.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::worker {

// What the worker's core exchanges with parameter servers and data servers, without the payloads.
// Meanings are those of proto/adamant/v1/{parameter_server,data_server,control}.proto.

using protocol::FetchOutcome;
using protocol::Lease;
using protocol::LeaseResult;
using protocol::PushOutcome;
using protocol::ShardAck;
using protocol::WorkKind;

using ServerSlot = std::uint32_t;

// --- Where buckets and parts live

struct BucketRecord {
  ConfigurationVersion version =
      0;                         ///< rises with every change of the servers that hold the bucket
  std::uint64_t generation = 0;  ///< rises when all of them were lost and it came back from disk
  ServerSlot primary = 0;
};

/// The controller's view, as far as it matters to a worker.
struct ClusterMap {
  std::uint64_t version = 0;
  std::vector<BucketRecord> buckets;    ///< by bucket id
  std::vector<ServerSlot> part_owners;  ///< by part of the training data
  std::uint32_t workers = 1;            ///< that run, this one among them
};

/// Returns what of the cluster's view matters to a worker.
ClusterMap ClusterMapOf(const protocol::Membership& view);

// --- Parameter servers

/// Names a fetch of this worker; rising, from 1.
using FetchId = std::uint64_t;

/// One update of a push, without its values.
struct RoutedUpdate {
  ShardId shard = 0;
  ConfigurationVersion bucket_version = 0;
  std::uint64_t fetched_version = 0;
  bool after_loss = false;
};

struct PushMessage {
  std::uint64_t request = 0;  ///< repeated in the reply
  ServerSlot server = 0;
  Sequence sequence = 0;
  std::uint64_t progress = 0;  ///< what schedules count
  std::uint64_t examples = 0;  ///< that the updates were computed from
  Correction correction = {};  ///< of the optimiser
  std::vector<RoutedUpdate> updates = {};
};

struct PushReply {
  std::uint64_t request = 0;
  std::vector<ShardAck> acks = {};
};

struct FetchMessage {
  std::uint64_t request = 0;
  ServerSlot server = 0;
  FetchId fetch = 0;
  std::uint64_t snapshot = 0;  ///< 0: the values of now
  std::vector<ShardId> shards = {};
};

struct FetchedShard {
  ShardId shard = 0;
  FetchOutcome outcome = FetchOutcome::kFound;
  std::uint64_t version = 0;
  Sequence included_sequence = 0;
  Sequence persisted = 0;  ///< last of this worker's that is on the server's disk
  ConfigurationVersion configuration_version = 0;  ///< of the bucket
  std::uint64_t examples = 0;                      ///< as ShardAck::examples
};

struct FetchReply {
  std::uint64_t request = 0;
  std::vector<FetchedShard> shards = {};  ///< in the order asked for
};

/// Asks a server to write to disk, and how far it has.
struct FlushMessage {
  std::uint64_t request = 0;
  ServerSlot server = 0;
  std::vector<ShardId> shards = {};
};

struct FlushReply {
  struct Persisted {
    ShardId shard = 0;
    Sequence sequence = 0;  ///< last of this worker's that is on the server's disk
  };
  std::uint64_t request = 0;
  std::vector<Persisted> persisted = {};
};

// --- Data servers

struct AcknowledgeMessage {
  ServerSlot server = 0;
  std::vector<LeaseResult> results = {};
};

struct HandBackMessage {
  ServerSlot server = 0;
  std::vector<Lease> leases = {};
};

}  // namespace adamant::worker
