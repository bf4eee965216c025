#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/optimiser/optimiser.h"
#include "services/common/protocol/ids.h"
#include "services/common/protocol/updates.h"
#include "services/common/tensor/shard_layout.h"

// What passes between the core and whoever drives it: the messages of parameter_server.proto and
// control.proto as plain values.
namespace adamant::parameter_server {

using protocol::FetchOutcome;
using protocol::PushOutcome;
using protocol::ShardAck;
using protocol::UpdateKind;
using protocol::WorkerId;

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
  ConfigurationVersion bucket_version = 0;  ///< of the map that the worker routed by
  Sequence sequence = 0;                    ///< per writer and shard: 1, 2, 3, …
  std::uint64_t fetched_version = 0;        ///< of the shard in the worker's last applied fetch
  bool after_loss = false;                  ///< the worker no longer has what lies before this one
  UpdateKind kind = UpdateKind::kWeightChange;
  std::uint32_t operands = 0;          ///< kOuterProduct: index into Push::operands
  std::span<const float> values = {};  ///< other kinds: one per element of the shard
};

struct Push {
  WorkerId writer = {};
  std::vector<ShardUpdate> updates = {};
  std::vector<Operands> operands = {};
  std::uint64_t job_examples = 0;          ///< what schedules count
  std::uint64_t examples = 0;              ///< that the updates were computed from
  Correction correction = {};              ///< of the optimiser, for all updates
  std::shared_ptr<const void> owner = {};  ///< keeps all spans valid
};

struct ShardValue {
  ShardId shard = 0;
  FetchOutcome outcome = FetchOutcome::kNotReady;
  std::uint64_t version = 0;
  Sequence included_sequence = 0;  ///< last sequence of the asking writer in the values
  Sequence persisted = 0;  ///< the asking writer's last sequence on the disks of all replicas
  ConfigurationVersion configuration_version = 0;  ///< of the bucket
  std::uint64_t examples = 0;                      ///< as ShardAck::examples
  std::span<const float> values = {};
  std::shared_ptr<const void> owner = {};  ///< keeps `values` valid
};

}  // namespace adamant::parameter_server
