#include "services/parameter_server/rpc/messages/frame_codec.h"

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
  update = codec::Decode(header);
  return update.kind == UpdateKind::kOuterProduct ||
         reader.ReadFloats(layout.shards()[update.shard].size(), update.values);
}

}  // namespace

bool DecodePush(const v1::Push& header,
                const rpc::LentBytes& payload,
                const ShardLayout& layout,
                Push& push) {
  FloatReader reader(payload.bytes);
  push.terms = codec::Decode(header);
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

void EncodeValues(std::span<const ShardValue> values,
                  v1::FetchReply& reply,
                  std::vector<rpc::LentBytes>& payload) {
  for (const ShardValue& value : values) {
    v1::ShardValue& out = *reply.add_values();
    codec::Encode(value, out);
    out.set_elements(value.values.size());
    if (!value.values.empty()) {
      payload.push_back({std::as_bytes(value.values), value.owner});
    }
  }
}

}  // namespace adamant::parameter_server
