#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "services/common/rpc/frame.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/messages.h"

namespace adamant::v1 {
class FetchReply;
class Membership;
class Push;
class PushReply;
}  // namespace adamant::v1

namespace adamant::parameter_server {

/// Memory for floats that a transport cut apart; kept from frame to frame.
using Scratch = std::deque<std::vector<std::byte>>;

/// The push in a frame: its numbers point into the frame where they lie together, else into
/// `scratch`. Returns false when the payload does not have the sizes that header and layout ask
/// for. `push` is valid while the frame and `scratch` are.
bool DecodePush(const v1::Push& header,
                const rpc::IncomingFrame& frame,
                const ShardLayout& layout,
                Scratch& scratch,
                Push& push);

void EncodeAcks(std::span<const ShardAck> acks, v1::PushReply& reply);

/// Describes the values found, and lends their bytes to `payload`, in order.
void EncodeValues(std::span<const ShardValue> values,
                  v1::FetchReply& reply,
                  std::vector<rpc::LentBytes>& payload);

std::vector<BucketRecord> BucketsOf(const v1::Membership& membership);

}  // namespace adamant::parameter_server
