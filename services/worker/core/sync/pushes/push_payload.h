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

using protocol::UpdateKind;

/// The bytes behind a PushMessage, in place.
struct PushPayload {
  struct Operands {
    std::uint32_t tensor = 0;
    std::uint64_t rows = 0;
    std::uint64_t inputs = 0;
    std::uint64_t outputs = 0;
    std::vector<std::span<const float>> activations;  ///< pieces of [rows, inputs]
    std::vector<std::span<const float>> errors;       ///< pieces of [rows, outputs]
  };
  struct Update {
    UpdateKind kind = UpdateKind::kGradient;
    std::size_t operands = 0;       ///< kOuterProduct: index
    std::span<const float> values;  ///< otherwise
  };
  std::vector<Operands> operands;
  std::vector<Update> updates;        ///< as in the message
  std::shared_ptr<const void> owner;  ///< keeps what the spans point into
};

/// The payload of `message`, without its owner.
PushPayload MakePayload(const UpdatePlan& plan,
                        const ShardLayout& layout,
                        const PushContent& content,
                        const PushMessage& message);

}  // namespace adamant::worker
