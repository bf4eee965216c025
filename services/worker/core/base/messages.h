#pragma once

#include <cstdint>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/protocol/control.h"
#include "services/common/protocol/updates.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::worker {

// What the worker's core exchanges with parameter servers and data servers, without the payloads.
// Meanings are those of proto/adamant/v1/{parameter_server,data_server,control}.proto.

using protocol::FetchedShard;
using protocol::FetchOutcome;
using protocol::Lease;
using protocol::LeaseResult;
using protocol::PersistedShard;
using protocol::PushOutcome;
using protocol::PushTerms;
using protocol::ShardAck;
using protocol::ShardUpdate;
using protocol::UpdateKind;
using protocol::WorkKind;

using ServerSlot = std::uint32_t;

// --- Where buckets and parts live

struct BucketPlacement {
  ConfigurationVersion version = 0;  ///< of the bucket's configuration
  std::uint64_t generation = 0;  ///< rises when all of them were lost and it came back from disk
  ServerSlot primary = 0;
};

/// Places of buckets and parts, by the newest membership: as far as it matters to a worker.
struct PlacementView {
  std::uint64_t version = 0;             ///< of the membership
  std::vector<BucketPlacement> buckets;  ///< by bucket id
  std::vector<ServerSlot> part_owners;   ///< by part of the training data
  std::uint32_t workers = 1;             ///< that run, this one among them
};

/// Returns what of a membership matters to a worker.
PlacementView PlacementViewOf(const protocol::Membership& view);

// --- Parameter servers

/// Names a fetch of this worker; rising, from 1.
using FetchId = std::uint64_t;

struct PushMessage {
  std::uint64_t request = 0;  ///< repeated in the reply
  ServerSlot server = 0;
  PushTerms terms = {};
  std::vector<ShardUpdate> updates = {};  ///< of one sequence; what they change is in the payload

  [[nodiscard]] Sequence sequence() const { return updates.front().sequence; }
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
  std::uint64_t request = 0;
  std::vector<PersistedShard> persisted = {};
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
