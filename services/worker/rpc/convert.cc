#include "services/worker/rpc/convert.h"

#include <span>

#include "proto/adamant/v1/data_server.pb.h"
#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/codec/updates.h"
#include "services/common/codec/work.h"

namespace adamant::worker {
namespace {

FetchOutcome OutcomeOf(v1::ShardValue::Outcome outcome) {
  switch (outcome) {
    case v1::ShardValue::FOUND:
      return FetchOutcome::kFound;
    case v1::ShardValue::NO_SUCH_SNAPSHOT:
      return FetchOutcome::kNoSuchSnapshot;
    case v1::ShardValue::NOT_PRIMARY:
      return FetchOutcome::kNotPrimary;
    default:
      return FetchOutcome::kNotReady;
  }
}

void Lend(std::span<const float> values, const PushPayload& payload, rpc::OutgoingFrame& frame) {
  frame.payload.push_back({.bytes = std::as_bytes(values), .owner = payload.owner});
}

}  // namespace

PushReply PushReplyOf(std::uint64_t request, const v1::PushReply& reply) {
  PushReply out = {.request = request};
  for (const v1::ShardAck& ack : reply.acks()) {
    out.acks.push_back(codec::Decode(ack));
  }
  return out;
}

FetchReply FetchReplyOf(std::uint64_t request, const v1::FetchReply& reply) {
  FetchReply out = {.request = request};
  for (const v1::ShardValue& value : reply.values()) {
    out.shards.push_back({.shard = value.shard(),
                          .outcome = OutcomeOf(value.outcome()),
                          .version = value.version(),
                          .included_sequence = value.included_sequence(),
                          .persisted = value.persisted(),
                          .configuration_version = value.epoch(),
                          .examples = value.examples()});
  }
  return out;
}

FlushReply FlushReplyOf(std::uint64_t request, const v1::FlushReply& reply) {
  FlushReply out = {.request = request};
  for (const v1::Persisted& persisted : reply.persisted()) {
    out.persisted.push_back({.shard = persisted.shard(), .sequence = persisted.sequence()});
  }
  return out;
}

std::vector<Lease> LeasesOf(const v1::Acknowledged& acknowledged) {
  std::vector<Lease> leases;
  for (const v1::Lease& lease : acknowledged.leases()) {
    leases.push_back(codec::Decode(lease));
  }
  return leases;
}

rpc::OutgoingFrame FrameOf(const PushMessage& message, const PushPayload& payload) {
  v1::ExchangeRequest request;
  rpc::OutgoingFrame frame;
  request.set_id(message.request);
  v1::Push& push = *request.mutable_push();
  push.set_job_examples(message.progress);
  push.set_examples(message.examples);
  if (message.correction != Correction{}) {
    codec::Encode(message.correction, *push.mutable_correction());
  }
  for (const PushPayload::Operands& operands : payload.operands) {
    v1::Operands& out = *push.add_operands();
    out.set_tensor(operands.tensor);
    out.set_rows(static_cast<std::uint32_t>(operands.rows));
    out.set_inputs(static_cast<std::uint32_t>(operands.inputs));
    out.set_outputs(static_cast<std::uint32_t>(operands.outputs));
    for (const auto& pieces : {operands.activations, operands.errors}) {
      for (const std::span<const float> piece : pieces) {
        Lend(piece, payload, frame);
      }
    }
  }
  for (std::size_t i = 0; i < message.updates.size(); ++i) {
    const RoutedUpdate& update = message.updates[i];
    const PushPayload::Update& content = payload.updates[i];
    v1::ShardUpdate& out = *push.add_updates();
    out.set_shard(update.shard);
    out.set_bucket_epoch(update.bucket_version);
    out.set_sequence(message.sequence);
    out.set_fetched_version(update.fetched_version);
    out.set_after_loss(update.after_loss);
    out.set_kind(static_cast<v1::UpdateKind>(content.kind));
    if (content.kind == UpdateKind::kOuterProduct) {
      out.set_operands(static_cast<std::uint32_t>(content.operands));
    } else {
      Lend(content.values, payload, frame);
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
