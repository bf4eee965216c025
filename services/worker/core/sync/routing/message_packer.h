#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "services/worker/core/base/messages.h"
#include "services/worker/core/sync/routing/routes.h"

namespace adamant::worker {

/// Amount that one shard adds to a message.
struct MessageCost {
  std::uint64_t bytes = 0;
  std::uint64_t operand_bytes = 0;  ///< once per message for all shards of a tensor in a row
  std::uint32_t tensor = 0;
};

/// Groups shards into messages by server, each at most as large as is allowed, unless one shard
/// alone has more. Threads: one.
template <class Message>
class MessagePacker {
 public:
  MessagePacker(std::uint64_t max_bytes, Routes& routes) : max_bytes_(max_bytes), routes_(routes) {}

  /// The message to add a shard to; one that is full goes to `messages`.
  template <class AnyMessage>
  Message& Reserve(ServerSlot server, const MessageCost& cost, std::vector<AnyMessage>& messages) {
    Open& open = open_[server];
    const std::uint64_t more = CostIn(open, cost);
    if (open.message.request != 0 && more > 0 && open.bytes + more > max_bytes_) {
      messages.emplace_back(std::exchange(open, {}).message);
    }
    if (open.message.request == 0) {
      open.message.request = routes_.NextRequest();
      open.message.server = server;
    }
    open.bytes += CostIn(open, cost);
    open.tensor = cost.tensor;
    return open.message;
  }

  /// The rest goes to `messages`.
  template <class AnyMessage>
  void Finish(std::vector<AnyMessage>& messages) {
    for (auto& [server, open] : open_) {
      messages.emplace_back(std::move(open.message));
    }
    open_.clear();
  }

 private:
  struct Open {
    Message message;
    std::uint64_t bytes = 0;
    std::optional<std::uint32_t> tensor;
  };

  static std::uint64_t CostIn(const Open& open, const MessageCost& cost) {
    return cost.bytes + (open.tensor == cost.tensor ? 0 : cost.operand_bytes);
  }

  const std::uint64_t max_bytes_;
  Routes& routes_;
  std::map<ServerSlot, Open> open_;
};

}  // namespace adamant::worker
