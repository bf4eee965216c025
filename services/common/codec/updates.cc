#include "services/common/codec/updates.h"

#include "proto/adamant/v1/parameter_server.pb.h"

namespace adamant::codec {
namespace {

using protocol::FetchOutcome;
using protocol::PushOutcome;
using protocol::UpdateKind;

// Enumerations of the protocol are those of the messages, in the same order.
static_assert(static_cast<int>(UpdateKind::kWeightChange) == v1::WEIGHT_CHANGE);
static_assert(static_cast<int>(UpdateKind::kGradient) == v1::GRADIENT);
static_assert(static_cast<int>(UpdateKind::kOuterProduct) == v1::OUTER_PRODUCT);
static_assert(static_cast<int>(PushOutcome::kApplied) == v1::ShardAck::APPLIED);
static_assert(static_cast<int>(PushOutcome::kDuplicate) == v1::ShardAck::DUPLICATE);
static_assert(static_cast<int>(PushOutcome::kUnexpectedSequence) ==
              v1::ShardAck::UNEXPECTED_SEQUENCE);
static_assert(static_cast<int>(PushOutcome::kNotPrimary) == v1::ShardAck::NOT_PRIMARY);
static_assert(static_cast<int>(PushOutcome::kNotReady) == v1::ShardAck::NOT_READY);
static_assert(static_cast<int>(PushOutcome::kNotFinite) == v1::ShardAck::NOT_FINITE);
static_assert(static_cast<int>(PushOutcome::kStaleIncarnation) == v1::ShardAck::STALE_INCARNATION);
static_assert(static_cast<int>(PushOutcome::kMalformed) == v1::ShardAck::MALFORMED);
static_assert(static_cast<int>(FetchOutcome::kFound) == v1::ShardValue::FOUND);
static_assert(static_cast<int>(FetchOutcome::kNotPrimary) == v1::ShardValue::NOT_PRIMARY);
static_assert(static_cast<int>(FetchOutcome::kNotReady) == v1::ShardValue::NOT_READY);
static_assert(static_cast<int>(FetchOutcome::kNoSuchSnapshot) == v1::ShardValue::NO_SUCH_SNAPSHOT);

}  // namespace

protocol::ShardAck Decode(const v1::ShardAck& message) {
  return {.shard = message.shard(),
          .outcome = v1::ShardAck::Outcome_IsValid(message.outcome())
                         ? static_cast<PushOutcome>(message.outcome())
                         : PushOutcome::kMalformed,
          .expected = message.expected(),
          .version = message.version(),
          .staleness = message.staleness(),
          .persisted = message.persisted(),
          .configuration_version = message.epoch(),
          .examples = message.examples()};
}

void Encode(const protocol::ShardAck& ack, v1::ShardAck& message) {
  message.set_shard(ack.shard);
  message.set_outcome(static_cast<v1::ShardAck::Outcome>(ack.outcome));
  message.set_expected(ack.expected);
  message.set_version(ack.version);
  message.set_staleness(ack.staleness);
  message.set_persisted(ack.persisted);
  message.set_epoch(ack.configuration_version);
  message.set_examples(ack.examples);
}

Correction Decode(const v1::Correction& message) {
  return {.rate = message.rate(), .memory = message.memory()};
}

void Encode(const Correction& correction, v1::Correction& message) {
  message.set_rate(correction.rate);
  message.set_memory(correction.memory);
}

}  // namespace adamant::codec
