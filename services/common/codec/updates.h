#pragma once

#include <span>
#include <vector>

#include "services/common/optimiser/optimiser.h"
#include "services/common/protocol/updates.h"

namespace adamant::v1 {
class Correction;
class FetchReply;
class FlushReply;
class Operands;
class Push;
class PushReply;
class ShardUpdate;
class ShardValue;
}  // namespace adamant::v1

/// As services/common/codec/buckets.h, for updates.
namespace adamant::codec {

/// Without its values. Its kind must be one that exists.
protocol::ShardUpdate Decode(const v1::ShardUpdate& message);
void Encode(const protocol::ShardUpdate& update, v1::ShardUpdate& message);

/// Without the numbers.
protocol::LayerOperands<std::span<const float>> Decode(const v1::Operands& message);
template <class Numbers>
void Encode(const protocol::LayerOperands<Numbers>& operands, v1::Operands& message);

/// Terms of a push, without its updates and operands.
protocol::PushTerms Decode(const v1::Push& message);
void Encode(const protocol::PushTerms& terms, v1::Push& message);

/// An outcome that does not exist is read as kMalformed.
std::vector<protocol::ShardAck> Decode(const v1::PushReply& message);
void Encode(std::span<const protocol::ShardAck> acks, v1::PushReply& message);

/// An outcome that does not exist is read as kNotReady.
std::vector<protocol::FetchedShard> Decode(const v1::FetchReply& message);

/// Without the number of its elements.
void Encode(const protocol::FetchedShard& fetched, v1::ShardValue& message);

std::vector<protocol::PersistedShard> Decode(const v1::FlushReply& message);
void Encode(std::span<const protocol::PersistedShard> shards, v1::FlushReply& message);

/// Not in its range if the message is not (Correction::IsValid).
Correction Decode(const v1::Correction& message);
void Encode(const Correction& correction, v1::Correction& message);

}  // namespace adamant::codec
