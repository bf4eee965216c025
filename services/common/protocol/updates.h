#pragma once

#include <cstdint>
#include <span>

#include "services/common/base/ids.h"
#include "services/common/optimiser/optimiser.h"

/// Pushes and fetches: what workers and parameter servers say to each other about shards.
namespace adamant::protocol {

enum class UpdateKind : std::uint8_t {
  kWeightChange,  ///< added to the weights
  kGradient,      ///< goes through the optimiser of the shard
  kOuterProduct,  ///< the gradient is errors^T x activations, restricted to the shard's range
};

/// Change of one shard by one push.
struct ShardUpdate {
  ShardId shard = 0;
  ConfigurationVersion configuration_version = 0;  ///< that the worker routed by
  Sequence sequence = 0;                           ///< per writer and shard: 1, 2, 3, …
  std::uint64_t fetched_version = 0;  ///< of the shard in the worker's last applied fetch
  bool after_loss = false;            ///< the worker no longer has what lies before this one
  UpdateKind kind = UpdateKind::kWeightChange;
  std::uint32_t operands = 0;          ///< kOuterProduct: index into those of the push
  std::span<const float> values = {};  ///< other kinds: one per element of the shard
};

/// Activations [rows, inputs] and errors [rows, outputs] of one fully connected layer, row-major.
/// `Numbers` refers to them: a span, or spans of pieces that lie end to end in the payload.
template <class Numbers>
struct LayerOperands {
  std::uint32_t tensor = 0;  ///< the weight tensor [outputs, inputs]
  std::uint32_t rows = 0;
  std::uint32_t inputs = 0;
  std::uint32_t outputs = 0;
  Numbers activations = {};
  Numbers errors = {};
};

/// Details that a push gives for all its updates.
struct PushTerms {
  std::uint64_t job_examples = 0;  ///< what schedules count, of the furthest of its batches
  std::uint64_t examples = 0;      ///< that the updates were computed from
  Correction correction = {};      ///< of the optimiser
};

enum class PushOutcome : std::uint8_t {
  kApplied,
  kDuplicate,           ///< was applied before
  kUnexpectedSequence,  ///< `expected` says which one comes next
  kNotPrimary,
  kNotReady,
  kNotFinite,         ///< the whole push was refused
  kStaleIncarnation,  ///< a newer process has the writer's slot
  kMalformed,         ///< sizes or kinds do not fit; the whole push was refused
};

/// The answer to one update of a push.
struct ShardAck {
  ShardId shard = 0;
  PushOutcome outcome = PushOutcome::kNotReady;
  Sequence expected = 0;
  std::uint64_t version = 0;           ///< of the shard: updates applied since its creation
  std::uint64_t update_staleness = 0;  ///< updates applied between the writer's fetch and this one
  Sequence persisted = 0;              ///< the writer's last sequence on the disks of all replicas
  ConfigurationVersion configuration_version = 0;  ///< of the bucket
  std::uint64_t examples = 0;  ///< in all updates that the shard took here since it is in memory
};

enum class FetchOutcome : std::uint8_t { kFound, kNotPrimary, kNotReady, kNoSuchSnapshot };

/// The answer to a fetch of one shard, but for its values.
struct FetchedShard {
  ShardId shard = 0;
  FetchOutcome outcome = FetchOutcome::kFound;
  std::uint64_t version = 0;
  Sequence included_sequence = 0;  ///< last sequence of the asking writer in the values
  Sequence persisted = 0;          ///< as ShardAck::persisted, of the asking writer
  ConfigurationVersion configuration_version = 0;  ///< of the bucket
  std::uint64_t examples = 0;                      ///< as ShardAck::examples
};

/// The answer to a flush, of one shard.
struct PersistedShard {
  ShardId shard = 0;
  Sequence sequence = 0;  ///< as ShardAck::persisted

  bool operator==(const PersistedShard&) const = default;
};

}  // namespace adamant::protocol
