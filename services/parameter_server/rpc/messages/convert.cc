#include "services/parameter_server/rpc/messages/convert.h"

#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/codec/updates.h"
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
            .bucket_version = header.bucket_epoch(),
            .sequence = header.sequence(),
            .fetched_version = header.fetched_version(),
            .after_loss = header.after_loss(),
            .kind = static_cast<UpdateKind>(header.kind()),
            .operands = header.operands()};
  return update.kind == UpdateKind::kOuterProduct ||
         reader.ReadFloats(layout.shards()[update.shard].size(), update.values);
}

}  // namespace

bool DecodePush(const v1::Push& header,
                const rpc::LentBytes& payload,
                const ShardLayout& layout,
                Push& push) {
  FloatReader reader(payload.bytes);
  push.job_examples = header.job_examples();
  push.examples = header.examples();
  push.correction = header.has_correction() ? codec::Decode(header.correction()) : Correction{};
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
    codec::Encode(ack, *reply.add_acks());
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
    out.set_epoch(value.configuration_version);
    out.set_persisted(value.persisted);
    out.set_examples(value.examples);
    if (!value.values.empty()) {
      payload.push_back({std::as_bytes(value.values), value.owner});
    }
  }
}

}  // namespace adamant::parameter_server
