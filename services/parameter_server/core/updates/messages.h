#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/protocol/ids.h"
#include "services/common/protocol/updates.h"
#include "services/common/tensor/shard_layout.h"

// What passes between the core and whoever drives it: the messages of parameter_server.proto and
// control.proto as plain values.
namespace adamant::parameter_server {

using protocol::FetchOutcome;
using protocol::PersistedShard;
using protocol::PushOutcome;
using protocol::PushTerms;
using protocol::ShardAck;
using protocol::ShardUpdate;
using protocol::UpdateKind;
using protocol::WorkerId;

using Operands = protocol::LayerOperands<std::span<const float>>;

struct Push {
  WorkerId writer = {};
  std::vector<ShardUpdate> updates = {};
  std::vector<Operands> operands = {};
  PushTerms terms = {};
  std::shared_ptr<const void> owner = {};  ///< keeps all spans valid
};

struct ShardValue : protocol::FetchedShard {
  std::span<const float> values = {};
  std::shared_ptr<const void> owner = {};  ///< keeps `values` valid
};

}  // namespace adamant::parameter_server
