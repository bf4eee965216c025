#pragma once

#include "services/common/optimiser/optimiser.h"
#include "services/common/protocol/updates.h"

namespace adamant::v1 {
class Correction;
class ShardAck;
}  // namespace adamant::v1

/// As services/common/codec/buckets.h, for updates.
namespace adamant::codec {

/// An outcome that does not exist is read as kMalformed.
protocol::ShardAck Decode(const v1::ShardAck& message);
void Encode(const protocol::ShardAck& ack, v1::ShardAck& message);

/// Not in its range if the message is not (Correction::IsValid).
Correction Decode(const v1::Correction& message);
void Encode(const Correction& correction, v1::Correction& message);

}  // namespace adamant::codec
