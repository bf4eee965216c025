#include "services/worker/rpc/convert.h"

#include <algorithm>
#include <span>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/data_server.pb.h"
#include "proto/adamant/v1/parameter_server.pb.h"

namespace adamant::worker {
namespace {

UpdateOutcome OutcomeOf(v1::ShardAck::Outcome outcome) {
  switch (outcome) {
    case v1::ShardAck::APPLIED:
      return UpdateOutcome::kApplied;
    case v1::ShardAck::DUPLICATE:
      return UpdateOutcome::kDuplicate;
    case v1::ShardAck::UNEXPECTED_SEQUENCE:
      return UpdateOutcome::kUnexpectedSequence;
    case v1::ShardAck::NOT_PRIMARY:
      return UpdateOutcome::kNotPrimary;
    case v1::ShardAck::NOT_READY:
      return UpdateOutcome::kNotReady;
    case v1::ShardAck::NOT_FINITE:
      return UpdateOutcome::kNotFinite;
    case v1::ShardAck::STALE_INCARNATION:
      return UpdateOutcome::kStaleIncarnation;
    default:
      return UpdateOutcome::kMalformed;
  }
}

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

std::vector<ServerPlace> ServersOf(const v1::Membership& membership, v1::Role role) {
  std::vector<ServerPlace> places;
  for (const v1::Member& member : membership.members()) {
    if (member.role() == role) {
      places.push_back({.slot = member.slot(),
                        .address = member.address(),
                        .incarnation = member.incarnation()});
    }
  }
  return places;
}

v1::UpdateKind KindOf(UpdateKind kind) {
  switch (kind) {
    case UpdateKind::kWeightChange:
      return v1::WEIGHT_CHANGE;
    case UpdateKind::kGradient:
      return v1::GRADIENT;
    case UpdateKind::kOuterProduct:
      return v1::OUTER_PRODUCT;
  }
  return v1::GRADIENT;
}

void SetLease(const Lease& lease, v1::Lease& out) {
  out.set_kind(lease.kind == WorkKind::kTrain ? v1::TRAIN : v1::EVALUATE);
  out.set_epoch(lease.epoch);
  out.set_part(lease.part);
  out.set_index(lease.index);
  out.set_id(lease.id);
}

void Lend(std::span<const float> values, const PushPayload& payload, rpc::OutgoingFrame& frame) {
  frame.payload.push_back({.bytes = std::as_bytes(values), .owner = payload.owner});
}

}  // namespace

ClusterMap ClusterMapOf(const v1::Membership& membership) {
  ClusterMap map;
  map.version = membership.version();
  for (const v1::Bucket& bucket : membership.buckets()) {
    map.buckets.push_back({.epoch = bucket.epoch(),
                           .generation = bucket.generation(),
                           .primary = bucket.primary().slot()});
  }
  map.part_owners.assign(membership.part_owner().begin(), membership.part_owner().end());
  map.workers = static_cast<std::uint32_t>(
      std::ranges::count(membership.members(), v1::WORKER, &v1::Member::role));
  return map;
}

std::vector<ServerPlace> ParameterServersOf(const v1::Membership& membership) {
  return ServersOf(membership, v1::PARAMETER_SERVER);
}

std::vector<ServerPlace> DataServersOf(const v1::Membership& membership) {
  return ServersOf(membership, v1::DATA_SERVER);
}

PushReply PushReplyOf(std::uint64_t request, const v1::PushReply& reply) {
  PushReply out = {.request = request};
  for (const v1::ShardAck& ack : reply.acks()) {
    out.acks.push_back({.shard = ack.shard(),
                        .outcome = OutcomeOf(ack.outcome()),
                        .expected = ack.expected(),
                        .staleness = ack.staleness(),
                        .persisted = ack.persisted(),
                        .epoch = ack.epoch(),
                        .examples = ack.examples()});
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
                          .epoch = value.epoch(),
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

Lease LeaseOf(const v1::Lease& lease) {
  return {.kind = lease.kind() == v1::EVALUATE ? WorkKind::kEvaluate : WorkKind::kTrain,
          .epoch = lease.epoch(),
          .part = lease.part(),
          .index = lease.index(),
          .id = lease.id()};
}

std::vector<Lease> LeasesOf(const v1::Acknowledged& acknowledged) {
  std::vector<Lease> leases;
  for (const v1::Lease& lease : acknowledged.leases()) {
    leases.push_back(LeaseOf(lease));
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
    push.mutable_correction()->set_rate(message.correction.rate);
    push.mutable_correction()->set_memory(message.correction.memory);
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
    const ShardUpdate& update = message.updates[i];
    const PushPayload::Update& content = payload.updates[i];
    v1::ShardUpdate& out = *push.add_updates();
    out.set_shard(update.shard);
    out.set_bucket_epoch(update.bucket_epoch);
    out.set_sequence(message.sequence);
    out.set_fetched_version(update.fetched_version);
    out.set_after_loss(update.after_loss);
    out.set_kind(KindOf(content.kind));
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
    v1::LeaseResult& out = *request.mutable_acknowledge()->add_results();
    SetLease(result.lease, *out.mutable_lease());
    out.set_examples(result.examples);
    out.set_loss_sum(result.loss_sum);
    out.set_correct(result.correct);
  }
  return {.header = request.SerializeAsString(), .payload = {}};
}

rpc::OutgoingFrame FrameOf(const HandBackMessage& message) {
  v1::WorkRequest request;
  for (const Lease& lease : message.leases) {
    SetLease(lease, *request.mutable_hand_back()->add_leases());
  }
  return {.header = request.SerializeAsString(), .payload = {}};
}

}  // namespace adamant::worker
