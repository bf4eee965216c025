#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/rpc/frame.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/replication/messages.h"

// Messages between peers as frames: MessageBatch in proto/adamant/v1/replication.proto.
namespace adamant::parameter_server {

/// Most messages of one message batch.
constexpr std::size_t kMaxMessageBatchMessages = 4096;

/// Bytes that this message adds to a message batch, but for the operands that it shares and its
/// numbers.
std::uint64_t BytesOf(const PeerMessage& message);

/// One frame with these messages, in order; at most kMaxMessageBatchMessages. Payload is lent, and
/// kept alive by the frame; operands that several updates share are written once.
rpc::OutgoingFrame EncodeMessageBatch(std::span<const PeerMessage> messages);

/// Limits on what a received message batch may hold.
struct MessageBatchLimits {
  const ShardLayout& layout;
  std::uint32_t writers;  ///< worker slots of the job
};

/// The messages of a frame. Payload stays where the frame has it if it lies there in one piece,
/// else it is copied once, and entries keep it alive.
/// Errors: InvalidArgument when anything does not fit the model, the job or the frame's size.
absl::StatusOr<std::vector<PeerMessage>> DecodeMessageBatch(rpc::IncomingFrame frame,
                                                            const MessageBatchLimits& limits);

}  // namespace adamant::parameter_server
