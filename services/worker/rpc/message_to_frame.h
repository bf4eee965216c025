#pragma once

#include "services/common/rpc/frame.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/sync/pushes/push_payload.h"

namespace adamant::worker {

/// Returns what is sent of a message. The payload of a push points into `payload` and shares its
/// owner.
rpc::OutgoingFrame FrameOf(const PushMessage& message, const PushPayload& payload);

rpc::OutgoingFrame FrameOf(const FetchMessage& message);
rpc::OutgoingFrame FrameOf(const FlushMessage& message);
rpc::OutgoingFrame FrameOf(const AcknowledgeMessage& message);
rpc::OutgoingFrame FrameOf(const HandBackMessage& message);

}  // namespace adamant::worker
