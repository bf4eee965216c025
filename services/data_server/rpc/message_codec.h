#pragma once

#include <vector>

#include "proto/adamant/v1/data_server.pb.h"
#include "services/data_server/core/messages.h"

namespace adamant::data_server {

/// The core's messages from those of the wire, and back. Threads: any.
Acknowledge FromProto(WorkerId worker, const v1::Acknowledge& message);
HandBack FromProto(WorkerId worker, const v1::HandBack& message);

v1::WorkReply ToProto(const Acknowledged& message);
v1::WorkReply ToProto(const Drained& message);
v1::WorkReply ToProto(const EpochClosed& message);

/// Without labels, which come with the images.
v1::WorkReply ToProto(const Dispatch& dispatch);

}  // namespace adamant::data_server
