#pragma once

#include <optional>

#include "services/common/protocol/control.h"

namespace adamant::v1 {
class ControllerMessage;
class MemberMessage;
class Membership;
}  // namespace adamant::v1

/// As services/common/codec/buckets.h, for what processes and the controller say to each other.
namespace adamant::codec {

/// Nothing for a message without content or with a role that does not exist.
std::optional<protocol::MemberMessage> Decode(const v1::MemberMessage& message);

/// A Join lacks what only the process's end of the stream knows: its job.
v1::MemberMessage Encode(const protocol::MemberMessage& message);

/// Nothing for a message without content, and for Welcome, which is read with the job in it.
std::optional<protocol::ControllerMessage> Decode(const v1::ControllerMessage& message);

/// A Welcome lacks the job, which the caller adds, with its rates scaled.
v1::ControllerMessage Encode(const protocol::ControllerMessage& message);

/// Without members whose role does not exist.
protocol::Membership Decode(const v1::Membership& message);

}  // namespace adamant::codec
