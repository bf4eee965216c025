#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "services/common/optimiser/optimiser.h"
#include "services/common/tensor/shard_layout.h"

// What passes between the core and whoever drives it: the messages of parameter_server.proto and
// control.proto as plain values.
namespace adamant::parameter_server {

/// Who pushes: a worker's slot and the incarnation of its process.
struct Writer {
  std::uint32_t slot = 0;
  std::uint64_t incarnation = 0;
};

enum class UpdateKind {
  kWeightChange,  ///< added to the weights
  kGradient,      ///< goes through the optimiser of the shard
  kOuterProduct,  ///< the gradient is errors^T x activations, restricted to the shard's range
};

/// Activations [rows, inputs] and errors [rows, outputs] of one fully connected layer, row-major.
struct Operands {
  std::uint32_t tensor = 0;  ///< the weight tensor [outputs, inputs]
  std::uint32_t rows = 0;
  std::uint32_t inputs = 0;
  std::uint32_t outputs = 0;
  std::span<const float> activations = {};
  std::span<const float> errors = {};
};

struct ShardUpdate {
  ShardId shard = 0;
  std::uint64_t bucket_epoch = 0;     ///< of the map that the worker routed by
  std::uint64_t sequence = 0;         ///< per writer and shard: 1, 2, 3, …
  std::uint64_t fetched_version = 0;  ///< of the shard in the worker's last applied fetch
  bool after_loss = false;            ///< the worker no longer has what lies before this one
  UpdateKind kind = UpdateKind::kWeightChange;
  std::uint32_t operands = 0;          ///< kOuterProduct: index into Push::operands
  std::span<const float> values = {};  ///< other kinds: one per element of the shard
};

struct Push {
  Writer writer = {};
  std::vector<ShardUpdate> updates = {};
  std::vector<Operands> operands = {};
  std::uint64_t job_examples = 0;          ///< what schedules count
  std::uint64_t examples = 0;              ///< that the updates were computed from
  Correction correction = {};              ///< of the optimiser, for all updates
  std::shared_ptr<const void> owner = {};  ///< keeps all spans valid
};

enum class PushOutcome {
  kApplied,
  kDuplicate,           ///< was applied before
  kUnexpectedSequence,  ///< `expected` says which one comes next
  kNotPrimary,
  kNotReady,
  kNotFinite,         ///< the whole push was refused
  kStaleIncarnation,  ///< a newer process has the writer's slot
  kMalformed,         ///< sizes or kinds do not fit; the whole push was refused
};

struct ShardAck {
  ShardId shard = 0;
  PushOutcome outcome = PushOutcome::kNotReady;
  std::uint64_t expected = 0;
  std::uint64_t version = 0;    ///< of the shard: updates applied since its creation
  std::uint64_t staleness = 0;  ///< updates applied between the writer's fetch and this one
  std::uint64_t persisted = 0;  ///< the writer's last sequence on the disks of all members
  std::uint64_t epoch = 0;      ///< of the bucket
  std::uint64_t examples = 0;   ///< in all updates that the shard took here since it is in memory
};

enum class FetchOutcome { kFound, kNotPrimary, kNotReady, kNoSuchSnapshot };

struct ShardValue {
  ShardId shard = 0;
  FetchOutcome outcome = FetchOutcome::kNotReady;
  std::uint64_t version = 0;
  std::uint64_t included_sequence = 0;  ///< last sequence of the asking writer in the values
  std::uint64_t persisted = 0;  ///< the asking writer's last sequence on the disks of all members
  std::uint64_t epoch = 0;      ///< of the bucket
  std::uint64_t examples = 0;   ///< as ShardAck::examples
  std::span<const float> values = {};
  std::shared_ptr<const void> owner = {};  ///< keeps `values` valid
};

}  // namespace adamant::parameter_server
