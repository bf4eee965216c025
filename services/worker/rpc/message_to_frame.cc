#include "services/worker/rpc/message_to_frame.h"

#include <span>

#include "proto/adamant/v1/data_server.pb.h"
#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/codec/updates.h"
#include "services/common/codec/work.h"

namespace adamant::worker {
namespace {

void Lend(std::span<const float> values, const PushPayload& payload, rpc::OutgoingFrame& frame) {
  frame.payload.push_back({.bytes = std::as_bytes(values), .owner = payload.owner});
}

}  // namespace

rpc::OutgoingFrame FrameOf(const PushMessage& message, const PushPayload& payload) {
  v1::ExchangeRequest request;
  rpc::OutgoingFrame frame;
  request.set_id(message.request);
  v1::Push& push = *request.mutable_push();
  codec::Encode(message.terms, push);
  for (const PushPayload::Operands& operands : payload.operands) {
    codec::Encode(operands, *push.add_operands());
    for (const auto& pieces : {operands.activations, operands.errors}) {
      for (const std::span<const float> piece : pieces) {
        Lend(piece, payload, frame);
      }
    }
  }
  for (const ShardUpdate& update : payload.updates) {
    codec::Encode(update, *push.add_updates());
    if (update.kind != UpdateKind::kOuterProduct) {
      Lend(update.values, payload, frame);
    }
  }
  frame.header = request.SerializeAsString();
  return frame;
}

rpc::OutgoingFrame FrameOf(const FetchMessage& message) {
  v1::ExchangeRequest request;
  request.set_id(message.request);
  v1::Fetch& fetch = *request.mutable_fetch();
  fetch.set_snapshot(message.snapshot);
  fetch.mutable_shards()->Assign(message.shards.begin(), message.shards.end());
  return {.header = request.SerializeAsString(), .payload = {}};
}

rpc::OutgoingFrame FrameOf(const FlushMessage& message) {
  v1::ExchangeRequest request;
  request.set_id(message.request);
  request.mutable_flush()->mutable_shards()->Assign(message.shards.begin(), message.shards.end());
  return {.header = request.SerializeAsString(), .payload = {}};
}

rpc::OutgoingFrame FrameOf(const AcknowledgeMessage& message) {
  v1::WorkRequest request;
  for (const LeaseResult& result : message.results) {
    codec::Encode(result, *request.mutable_acknowledge()->add_results());
  }
  return {.header = request.SerializeAsString(), .payload = {}};
}

rpc::OutgoingFrame FrameOf(const HandBackMessage& message) {
  v1::WorkRequest request;
  for (const Lease& lease : message.leases) {
    codec::Encode(lease, *request.mutable_hand_back()->add_leases());
  }
  return {.header = request.SerializeAsString(), .payload = {}};
}

}  // namespace adamant::worker
