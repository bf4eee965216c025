#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "services/common/tensor/shard_layout.h"
#include "services/worker/core/base/accumulator.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/base/update_plan.h"

namespace adamant::worker {

/// Content of one push: accumulators of different threads, of which the first holds the sum.
struct PushContent {
  static constexpr std::size_t kNoThread = std::numeric_limits<std::size_t>::max();

  struct Part {
    Accumulator* accumulator = nullptr;
    std::size_t thread = 0;  ///< that the accumulator goes back to; kNoThread: PushStore's own
  };
  std::vector<Part> parts;
  bool refused = false;                ///< by a server
  std::atomic<std::uint32_t> pins{0};  ///< payloads that a transport still holds
};

/// The bytes behind a PushMessage, in place: operands have a piece in each accumulator.
struct PushPayload {
  using Operands = protocol::LayerOperands<std::vector<std::span<const float>>>;

  std::vector<Operands> operands;
  std::vector<ShardUpdate> updates;   ///< the message's, with what they change
  std::shared_ptr<const void> owner;  ///< keeps what the spans point into
};

/// The payload of `message`, without its owner.
PushPayload MakePayload(const UpdatePlan& plan,
                        const ShardLayout& layout,
                        const PushContent& content,
                        const PushMessage& message);

}  // namespace adamant::worker
