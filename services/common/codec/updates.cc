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

protocol::ShardAck AckOf(const v1::ShardAck& message) {
  return {.shard = message.shard(),
          .outcome = v1::ShardAck::Outcome_IsValid(message.outcome())
                         ? static_cast<PushOutcome>(message.outcome())
                         : PushOutcome::kMalformed,
          .expected = message.expected(),
          .version = message.version(),
          .update_staleness = message.staleness(),
          .persisted = message.persisted(),
          .configuration_version = message.epoch(),
          .examples = message.examples()};
}

protocol::FetchedShard FetchedOf(const v1::ShardValue& message) {
  return {.shard = message.shard(),
          .outcome = v1::ShardValue::Outcome_IsValid(message.outcome())
                         ? static_cast<FetchOutcome>(message.outcome())
                         : FetchOutcome::kNotReady,
          .version = message.version(),
          .included_sequence = message.included_sequence(),
          .persisted = message.persisted(),
          .configuration_version = message.epoch(),
          .examples = message.examples()};
}

}  // namespace

protocol::ShardUpdate Decode(const v1::ShardUpdate& message) {
  return {.shard = message.shard(),
          .configuration_version = message.bucket_epoch(),
          .sequence = message.sequence(),
          .fetched_version = message.fetched_version(),
          .after_loss = message.after_loss(),
          .kind = static_cast<UpdateKind>(message.kind()),
          .operands = message.operands()};
}

void Encode(const protocol::ShardUpdate& update, v1::ShardUpdate& message) {
  message.set_shard(update.shard);
  message.set_bucket_epoch(update.configuration_version);
  message.set_sequence(update.sequence);
  message.set_fetched_version(update.fetched_version);
  message.set_after_loss(update.after_loss);
  message.set_kind(static_cast<v1::UpdateKind>(update.kind));
  message.set_operands(update.operands);
}

protocol::LayerOperands<std::span<const float>> Decode(const v1::Operands& message) {
  return {.tensor = message.tensor(),
          .rows = message.rows(),
          .inputs = message.inputs(),
          .outputs = message.outputs()};
}

template <class Numbers>
void Encode(const protocol::LayerOperands<Numbers>& operands, v1::Operands& message) {
  message.set_tensor(operands.tensor);
  message.set_rows(operands.rows);
  message.set_inputs(operands.inputs);
  message.set_outputs(operands.outputs);
}

template void Encode(const protocol::LayerOperands<std::span<const float>>&, v1::Operands&);
template void Encode(const protocol::LayerOperands<std::vector<std::span<const float>>>&,
                     v1::Operands&);

protocol::PushTerms Decode(const v1::Push& message) {
  return {.job_examples = message.job_examples(),
          .examples = message.examples(),
          .correction = message.has_correction() ? Decode(message.correction()) : Correction{}};
}

void Encode(const protocol::PushTerms& terms, v1::Push& message) {
  message.set_job_examples(terms.job_examples);
  message.set_examples(terms.examples);
  if (terms.correction != Correction{}) {
    Encode(terms.correction, *message.mutable_correction());
  }
}

std::vector<protocol::ShardAck> Decode(const v1::PushReply& message) {
  std::vector<protocol::ShardAck> acks;
  for (const v1::ShardAck& ack : message.acks()) {
    acks.push_back(AckOf(ack));
  }
  return acks;
}

void Encode(std::span<const protocol::ShardAck> acks, v1::PushReply& message) {
  for (const protocol::ShardAck& ack : acks) {
    v1::ShardAck& out = *message.add_acks();
    out.set_shard(ack.shard);
    out.set_outcome(static_cast<v1::ShardAck::Outcome>(ack.outcome));
    out.set_expected(ack.expected);
    out.set_version(ack.version);
    out.set_staleness(ack.update_staleness);
    out.set_persisted(ack.persisted);
    out.set_epoch(ack.configuration_version);
    out.set_examples(ack.examples);
  }
}

std::vector<protocol::FetchedShard> Decode(const v1::FetchReply& message) {
  std::vector<protocol::FetchedShard> shards;
  for (const v1::ShardValue& value : message.values()) {
    shards.push_back(FetchedOf(value));
  }
  return shards;
}

void Encode(const protocol::FetchedShard& fetched, v1::ShardValue& message) {
  message.set_shard(fetched.shard);
  message.set_outcome(static_cast<v1::ShardValue::Outcome>(fetched.outcome));
  message.set_version(fetched.version);
  message.set_included_sequence(fetched.included_sequence);
  message.set_epoch(fetched.configuration_version);
  message.set_persisted(fetched.persisted);
  message.set_examples(fetched.examples);
}

std::vector<protocol::PersistedShard> Decode(const v1::FlushReply& message) {
  std::vector<protocol::PersistedShard> shards;
  for (const v1::Persisted& persisted : message.persisted()) {
    shards.push_back({.shard = persisted.shard(), .sequence = persisted.sequence()});
  }
  return shards;
}

void Encode(std::span<const protocol::PersistedShard> shards, v1::FlushReply& message) {
  for (const protocol::PersistedShard& persisted : shards) {
    v1::Persisted& out = *message.add_persisted();
    out.set_shard(persisted.shard);
    out.set_sequence(persisted.sequence);
  }
}

Correction Decode(const v1::Correction& message) {
  return {.rate = message.rate(), .memory = message.memory()};
}

void Encode(const Correction& correction, v1::Correction& message) {
  message.set_rate(correction.rate);
  message.set_memory(correction.memory);
}

}  // namespace adamant::codec
