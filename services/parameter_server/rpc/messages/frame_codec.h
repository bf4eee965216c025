#pragma once

#include <span>
#include <vector>

#include "services/common/rpc/frame.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/updates/messages.h"

namespace adamant::v1 {
class FetchReply;
class Push;
}  // namespace adamant::v1

namespace adamant::parameter_server {

/// The push that a frame holds; its numbers point into `payload`, which it keeps alive. False when
/// the payload does not have the sizes that header and layout ask for.
bool DecodePush(const v1::Push& header,
                const rpc::LentBytes& payload,
                const ShardLayout& layout,
                Push& push);

/// Describes the values found, and lends their bytes to `payload`, in order.
void EncodeValues(std::span<const ShardValue> values,
                  v1::FetchReply& reply,
                  std::vector<rpc::LentBytes>& payload);

}  // namespace adamant::parameter_server
