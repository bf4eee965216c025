#include "services/parameter_server/rpc/messages/convert.h"

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/parameter_server/rpc/messages/payload.h"

namespace adamant::parameter_server {
namespace {

bool DecodeUpdate(const v1::ShardUpdate& header,
                  const ShardLayout& layout,
                  FloatReader& reader,
                  ShardUpdate& update) {
  if (header.shard() >= layout.shards().size() || !v1::UpdateKind_IsValid(header.kind())) {
    return false;
  }
  update = {.shard = header.shard(),
            .bucket_epoch = header.bucket_epoch(),
            .sequence = header.sequence(),
            .fetched_version = header.fetched_version(),
            .after_loss = header.after_loss(),
            .kind = static_cast<UpdateKind>(header.kind()),
            .operands = header.operands()};
  return update.kind == UpdateKind::kOuterProduct ||
         reader.ReadFloats(layout.shards()[update.shard].size(), update.values);
}

// The enumerations of the core are those of the messages, in the same order.
static_assert(static_cast<int>(UpdateKind::kOuterProduct) == v1::OUTER_PRODUCT);
static_assert(static_cast<int>(UpdateKind::kGradient) == v1::GRADIENT);
static_assert(static_cast<int>(PushOutcome::kMalformed) == v1::ShardAck::MALFORMED);
static_assert(static_cast<int>(PushOutcome::kNotPrimary) == v1::ShardAck::NOT_PRIMARY);
static_assert(static_cast<int>(PushOutcome::kNotReady) == v1::ShardAck::NOT_READY);
static_assert(static_cast<int>(PushOutcome::kNotFinite) == v1::ShardAck::NOT_FINITE);
static_assert(static_cast<int>(FetchOutcome::kNotReady) == v1::ShardValue::NOT_READY);
static_assert(static_cast<int>(FetchOutcome::kNoSuchSnapshot) == v1::ShardValue::NO_SUCH_SNAPSHOT);

}  // namespace

bool DecodePush(const v1::Push& header,
                const rpc::LentBytes& payload,
                const ShardLayout& layout,
                Push& push) {
  FloatReader reader(payload.bytes);
  push.job_examples = header.job_examples();
  push.examples = header.examples();
  push.correction = CorrectionOf(header.has_correction(), header.correction());
  push.owner = payload.owner;
  for (const v1::Operands& operands : header.operands()) {
    if (!ReadOperands(operands, reader, push.operands.emplace_back())) {
      return false;
    }
  }
  for (const v1::ShardUpdate& update : header.updates()) {
    if (!DecodeUpdate(update, layout, reader, push.updates.emplace_back())) {
      return false;
    }
  }
  return reader.AtEnd();
}

void EncodeAcks(std::span<const ShardAck> acks, v1::PushReply& reply) {
  for (const ShardAck& ack : acks) {
    v1::ShardAck& out = *reply.add_acks();
    out.set_shard(ack.shard);
    out.set_outcome(static_cast<v1::ShardAck::Outcome>(ack.outcome));
    out.set_expected(ack.expected);
    out.set_version(ack.version);
    out.set_staleness(ack.staleness);
    out.set_persisted(ack.persisted);
    out.set_epoch(ack.epoch);
    out.set_examples(ack.examples);
  }
}

void EncodeValues(std::span<const ShardValue> values,
                  v1::FetchReply& reply,
                  std::vector<rpc::LentBytes>& payload) {
  for (const ShardValue& value : values) {
    v1::ShardValue& out = *reply.add_values();
    out.set_shard(value.shard);
    out.set_outcome(static_cast<v1::ShardValue::Outcome>(value.outcome));
    out.set_version(value.version);
    out.set_included_sequence(value.included_sequence);
    out.set_elements(value.values.size());
    out.set_epoch(value.epoch);
    out.set_persisted(value.persisted);
    out.set_examples(value.examples);
    if (!value.values.empty()) {
      payload.push_back({std::as_bytes(value.values), value.owner});
    }
  }
}

Correction CorrectionOf(bool present, const v1::Correction& correction) {
  return present ? Correction{.rate = correction.rate(), .memory = correction.memory()}
                 : Correction{};
}

void EncodeCorrection(const Correction& correction, v1::Correction& out) {
  out.set_rate(correction.rate);
  out.set_memory(correction.memory);
}

Holder HolderOf(const v1::Holder& holder) {
  return {.slot = holder.slot(), .incarnation = holder.incarnation()};
}

void EncodeHolder(const Holder& holder, v1::Holder& out) {
  out.set_slot(holder.slot);
  out.set_incarnation(holder.incarnation);
}

}  // namespace adamant::parameter_server
