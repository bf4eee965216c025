#include "tests/simulation/convert.h"

namespace adamant::simulation {
namespace {

// The cores' enumerations mirror those of one proto file, in its order.
template <class To, class From>
To Same(From value) {
  return static_cast<To>(value);
}

std::span<const float> Join(const std::vector<std::span<const float>>& pieces,
                            std::deque<std::vector<float>>& rows) {
  std::vector<float>& whole = rows.emplace_back();
  for (const std::span<const float> piece : pieces) {
    whole.insert(whole.end(), piece.begin(), piece.end());
  }
  return whole;
}

}  // namespace

parameter_server::Push ToParameterServer(const parameter_server::Writer& writer,
                                         const PushFrame& frame,
                                         std::deque<std::vector<float>>& rows) {
  parameter_server::Push push{.writer = writer, .job_examples = frame.header.job_examples};
  for (const worker::PushPayload::Operands& operands : frame.payload.operands) {
    push.operands.push_back({.tensor = operands.tensor,
                             .rows = static_cast<std::uint32_t>(operands.rows),
                             .inputs = static_cast<std::uint32_t>(operands.inputs),
                             .outputs = static_cast<std::uint32_t>(operands.outputs),
                             .activations = Join(operands.activations, rows),
                             .errors = Join(operands.errors, rows)});
  }
  for (std::size_t i = 0; i < frame.header.updates.size(); ++i) {
    const worker::ShardUpdate& update = frame.header.updates[i];
    const worker::PushPayload::Update& content = frame.payload.updates[i];
    push.updates.push_back({.shard = update.shard,
                            .bucket_epoch = update.bucket_epoch,
                            .sequence = frame.header.sequence,
                            .fetched_version = update.fetched_version,
                            .after_loss = update.after_loss,
                            .kind = content.kind == worker::UpdateKind::kOuterProduct
                                        ? parameter_server::UpdateKind::kOuterProduct
                                    : content.kind == worker::UpdateKind::kGradient
                                        ? parameter_server::UpdateKind::kGradient
                                        : parameter_server::UpdateKind::kWeightChange,
                            .operands = static_cast<std::uint32_t>(content.operands),
                            .values = content.values});
  }
  return push;
}

std::vector<parameter_server::BucketRecord> BucketsOf(const controller::Membership& view) {
  std::vector<parameter_server::BucketRecord> buckets;
  for (const controller::Bucket& bucket : view.buckets) {
    buckets.push_back(
        {.epoch = bucket.epoch, .primary = bucket.primary, .created = bucket.created});
  }
  return buckets;
}

worker::PushReply ToWorker(std::uint64_t request,
                           const std::vector<parameter_server::ShardAck>& acks) {
  worker::PushReply reply{.request = request};
  for (const parameter_server::ShardAck& ack : acks) {
    reply.acks.push_back({.shard = ack.shard,
                          .outcome = Same<worker::UpdateOutcome>(ack.outcome),
                          .expected = ack.expected,
                          .staleness = ack.staleness});
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
                            .included_sequence = value.included_sequence});
  }
  return reply;
}

worker::ClusterMap ClusterMapOf(const controller::Membership& view) {
  worker::ClusterMap map{.version = view.version, .buckets = {}, .part_owners = view.part_owner};
  for (const controller::Bucket& bucket : view.buckets) {
    map.buckets.push_back({.epoch = bucket.epoch, .primary = bucket.primary});
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
