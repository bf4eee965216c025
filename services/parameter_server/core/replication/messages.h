#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/protocol/buckets.h"
#include "services/parameter_server/core/updates/messages.h"

// What the servers of a bucket and the controller say to each other about it:
// proto/adamant/v1/replication.proto and the replication part of control.proto as plain values,
// whose comments hold here too. The protocol: docs/design/0002-replication.md.
namespace adamant::parameter_server {

/// Log sequence number: the entries of a bucket are 1, 2, 3, …; 0 lies before the first.
using Lsn = std::uint64_t;

using protocol::Configuration;
using protocol::Proposal;
using protocol::ServerId;

// --- The log

/// Operands that several updates share.
struct SharedOperands {
  Operands operands;
  std::shared_ptr<const void> owner = {};  ///< keeps the spans valid
};

/// One update to one shard, judged and numbered.
struct LoggedUpdate {
  ShardId shard = 0;
  WorkerId writer = {};
  Sequence sequence = 0;
  bool after_loss = false;
  UpdateKind kind = UpdateKind::kWeightChange;
  std::uint64_t job_examples = 0;
  std::uint64_t examples = 0;                           ///< that it was computed from
  Correction correction = {};                           ///< of the optimiser
  std::span<const float> values = {};                   ///< dense kinds: one per element
  std::shared_ptr<const SharedOperands> operands = {};  ///< kOuterProduct
  std::uint64_t fetched_version = 0;  ///< at the primary only, for update staleness
};

/// One change of a record.
struct LoggedPut {
  std::string key;
  std::uint64_t version = 0;  ///< of the record when this is applied
  std::string value;
};

/// Updates and puts that are prepared, committed and applied as one.
struct Entry {
  Lsn lsn = 0;
  ConfigurationVersion origin =
      0;  ///< of the primary that made it: with the lsn it names the content
  std::vector<LoggedUpdate> updates = {};
  std::vector<LoggedPut> puts = {};
  std::shared_ptr<const void> owner = {};  ///< keeps the values valid
  std::uint64_t bytes = 0;                 ///< of payload
};
using EntryPtr = std::shared_ptr<const Entry>;

// --- Between servers

struct Prepare {
  Lsn base = 0;
  Lsn committed = 0;
  EntryPtr entry;
};

struct PrepareAck {
  Lsn acked = 0;
  bool gap = false;
  std::uint64_t copy = 0;
  Lsn flushed = 0;
};

struct Beacon {
  std::uint64_t generation = 0;
  ServerId primary;
  std::vector<ServerId> replicas = {};
  Lsn base = 0;
  Lsn committed = 0;
  Clock::TimePoint sent{};  ///< by the primary's clock
  bool flush = false;
};

struct BeaconAnswer {
  Clock::TimePoint sent{};
  Lsn acked = 0;
  std::uint64_t copy = 0;
  Lsn flushed = 0;
};

struct Released {};

struct CopyBegin {
  std::uint64_t copy = 0;
  Lsn base = 0;
  ConfigurationVersion base_origin = 0;  ///< Entry::origin of the entry at `base`; 0: not known
  std::uint64_t generation = 0;
  std::uint32_t parts = 0;
};

struct CopiedShard {
  ShardId shard = 0;
  std::shared_ptr<const std::string> stored;  ///< as EncodeShard and SealShard make it
};

struct CopiedRecord {
  std::string key;
  std::uint64_t version = 0;
  std::string value;
};

struct CopyPart {
  std::uint64_t copy = 0;
  std::uint32_t index = 0;
  std::variant<CopiedShard, CopiedRecord> content;
};

struct CopyAck {
  std::uint64_t copy = 0;
  std::uint32_t index = 0;
};

struct PeerMessage {
  BucketId bucket = 0;
  ConfigurationVersion configuration_version = 0;
  std::variant<Prepare, PrepareAck, Beacon, BeaconAnswer, Released, CopyBegin, CopyPart, CopyAck>
      kind;

  /// Returns true if it may be large: prepares and copies go their own way, so that no beacon waits
  /// behind them.
  [[nodiscard]] bool bulk() const {
    return std::holds_alternative<Prepare>(kind) || std::holds_alternative<CopyBegin>(kind) ||
           std::holds_alternative<CopyPart>(kind);
  }
};

/// Times that all replicas of a job agree on.
struct ReplicationTimes {
  Clock::Duration beacon = std::chrono::milliseconds(500);
  Clock::Duration lease = std::chrono::seconds(3);  ///< D
  Clock::Duration grace = std::chrono::seconds(4);  ///< G; at least lease x 1.1 / 0.9
};

}  // namespace adamant::parameter_server
