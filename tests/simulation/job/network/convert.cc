#include "tests/simulation/job/network/convert.h"

#include <deque>
#include <memory>

namespace adamant::simulation {
namespace {

// The cores' enumerations mirror those of one proto file, in its order.
template <class To, class From>
To Same(From value) {
  return static_cast<To>(value);
}

/// Memory of a received push.
struct Received {
  std::deque<std::vector<float>> arrays;

  std::span<const float> Keep(const std::vector<std::span<const float>>& pieces) {
    std::vector<float>& whole = arrays.emplace_back();
    for (const std::span<const float> piece : pieces) {
      whole.insert(whole.end(), piece.begin(), piece.end());
    }
    return whole;
  }
};

parameter_server::UpdateKind KindOf(worker::UpdateKind kind) {
  switch (kind) {
    case worker::UpdateKind::kOuterProduct:
      return parameter_server::UpdateKind::kOuterProduct;
    case worker::UpdateKind::kGradient:
      return parameter_server::UpdateKind::kGradient;
    default:
      return parameter_server::UpdateKind::kWeightChange;
  }
}

}  // namespace

parameter_server::Push ToParameterServer(const parameter_server::Writer& writer,
                                         const PushFrame& frame) {
  const auto received = std::make_shared<Received>();
  parameter_server::Push push{
      .writer = writer, .job_examples = frame.header.progress, .owner = received};
  for (const worker::PushPayload::Operands& operands : frame.payload.operands) {
    push.operands.push_back({.tensor = operands.tensor,
                             .rows = static_cast<std::uint32_t>(operands.rows),
                             .inputs = static_cast<std::uint32_t>(operands.inputs),
                             .outputs = static_cast<std::uint32_t>(operands.outputs),
                             .activations = received->Keep(operands.activations),
                             .errors = received->Keep(operands.errors)});
  }
  for (std::size_t i = 0; i < frame.header.updates.size(); ++i) {
    const worker::ShardUpdate& update = frame.header.updates[i];
    const worker::PushPayload::Update& content = frame.payload.updates[i];
    push.updates.push_back({.shard = update.shard,
                            .bucket_epoch = update.bucket_epoch,
                            .sequence = frame.header.sequence,
                            .fetched_version = update.fetched_version,
                            .after_loss = update.after_loss,
                            .kind = KindOf(content.kind),
                            .operands = static_cast<std::uint32_t>(content.operands),
                            .values = received->Keep({content.values})});
  }
  return push;
}

worker::PushReply ToWorker(std::uint64_t request,
                           const std::vector<parameter_server::ShardAck>& acks) {
  worker::PushReply reply{.request = request};
  for (const parameter_server::ShardAck& ack : acks) {
    reply.acks.push_back({.shard = ack.shard,
                          .outcome = Same<worker::UpdateOutcome>(ack.outcome),
                          .expected = ack.expected,
                          .staleness = ack.staleness,
                          .persisted = ack.persisted,
                          .epoch = ack.epoch});
  }
  return reply;
}

worker::FetchReply ToWorker(std::uint64_t request,
                            const std::vector<parameter_server::ShardValue>& values) {
  worker::FetchReply reply{.request = request};
  for (const parameter_server::ShardValue& value : values) {
    reply.shards.push_back({.shard = value.shard,
                            .outcome = Same<worker::FetchOutcome>(value.outcome),
                            .version = value.version,
                            .included_sequence = value.included_sequence,
                            .persisted = value.persisted,
                            .epoch = value.epoch});
  }
  return reply;
}

worker::ClusterMap ClusterMapOf(const controller::Membership& view) {
  worker::ClusterMap map{.version = view.version, .buckets = {}, .part_owners = view.part_owner};
  for (const controller::Bucket& bucket : view.buckets) {
    map.buckets.push_back(
        {.epoch = bucket.epoch, .generation = bucket.generation, .primary = bucket.primary.slot});
  }
  return map;
}

worker::Lease ToWorker(const data_server::Lease& lease) {
  return {.kind = Same<worker::WorkKind>(lease.batch.kind),
          .epoch = lease.batch.epoch,
          .part = lease.batch.part,
          .index = lease.batch.index,
          .id = lease.id};
}

data_server::Lease ToDataServer(const worker::Lease& lease) {
  return {.batch = {.kind = Same<data_server::WorkKind>(lease.kind),
                    .epoch = lease.epoch,
                    .part = lease.part,
                    .index = lease.index},
          .id = lease.id};
}

data_server::LeaseResult ToDataServer(const worker::LeaseResult& result) {
  return {
      .lease = ToDataServer(result.lease), .loss_sum = result.loss_sum, .correct = result.correct};
}

}  // namespace adamant::simulation
