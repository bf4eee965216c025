#pragma once

#include <cstdint>

#include "services/common/base/ids.h"

/// Pushes and fetches: what workers and parameter servers say to each other about shards.
namespace adamant::protocol {

enum class UpdateKind : std::uint8_t {
  kWeightChange,  ///< added to the weights
  kGradient,      ///< goes through the optimiser of the shard
  kOuterProduct,  ///< the gradient is errors^T x activations, restricted to the shard's range
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
  std::uint64_t version = 0;    ///< of the shard: updates applied since its creation
  std::uint64_t staleness = 0;  ///< updates applied between the writer's fetch and this one
  Sequence persisted = 0;       ///< the writer's last sequence on the disks of all replicas
  ConfigurationVersion configuration_version = 0;  ///< of the bucket
  std::uint64_t examples = 0;  ///< in all updates that the shard took here since it is in memory
};

enum class FetchOutcome : std::uint8_t { kFound, kNotPrimary, kNotReady, kNoSuchSnapshot };

}  // namespace adamant::protocol
