#pragma once

#include <vector>

#include "services/common/rpc/frame.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/sync/pushes/push_payload.h"

namespace adamant::v1 {
class Acknowledged;
}  // namespace adamant::v1

namespace adamant::worker {

// Between the core's messages and those of the wire.

std::vector<Lease> LeasesOf(const v1::Acknowledged& acknowledged);

/// The frame of a push; its payload points into `payload` and shares its owner.
rpc::OutgoingFrame FrameOf(const PushMessage& message, const PushPayload& payload);

rpc::OutgoingFrame FrameOf(const FetchMessage& message);
rpc::OutgoingFrame FrameOf(const FlushMessage& message);
rpc::OutgoingFrame FrameOf(const AcknowledgeMessage& message);
rpc::OutgoingFrame FrameOf(const HandBackMessage& message);

}  // namespace adamant::worker
