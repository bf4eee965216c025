#include "tests/simulation/convert.h"

#include <deque>
#include <memory>
#include <optional>

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

template <class To, class From>
To HolderTo(const From& holder) {
  return {.slot = holder.slot, .incarnation = holder.incarnation};
}

std::optional<parameter_server::Holder> Advised(const std::optional<controller::Holder>& holder) {
  return holder.has_value() ? std::optional(HolderTo<parameter_server::Holder>(*holder))
                            : std::nullopt;
}

double Seconds(Clock::Duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

parameter_server::Push ToParameterServer(const parameter_server::Writer& writer,
                                         const PushFrame& frame) {
  const auto received = std::make_shared<Received>();
  parameter_server::Push push{
      .writer = writer, .job_examples = frame.header.job_examples, .owner = received};
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

std::vector<parameter_server::Configuration> ConfigurationsOf(const controller::Membership& view) {
  std::vector<parameter_server::Configuration> configurations;
  for (const controller::Bucket& bucket : view.buckets) {
    parameter_server::Configuration& configuration = configurations.emplace_back();
    configuration.epoch = bucket.epoch;
    configuration.generation = bucket.generation;
    configuration.primary = HolderTo<parameter_server::Holder>(bucket.primary);
    for (const controller::Holder& member : bucket.members) {
      configuration.members.push_back(HolderTo<parameter_server::Holder>(member));
    }
    configuration.created = bucket.created;
    configuration.learner = Advised(bucket.learner);
    configuration.leaver = Advised(bucket.leaver);
    configuration.heir = Advised(bucket.heir);
    configuration.restored_snapshot = bucket.restored_snapshot;
  }
  return configurations;
}

std::vector<parameter_server::Holder> DeadOf(const controller::Membership& view) {
  std::vector<parameter_server::Holder> dead;
  for (const controller::Holder& holder : view.dead) {
    dead.push_back(HolderTo<parameter_server::Holder>(holder));
  }
  return dead;
}

controller::Proposal ToController(const parameter_server::Proposal& proposal) {
  return {.bucket = proposal.bucket,
          .epoch = proposal.epoch,
          .kind = Same<controller::Proposal::Kind>(proposal.kind),
          .proposer = HolderTo<controller::Holder>(proposal.proposer),
          .subject = HolderTo<controller::Holder>(proposal.subject),
          .last_lsn = proposal.last_lsn,
          .released = proposal.released};
}

controller::BucketState ToController(const parameter_server::BucketReport& report) {
  controller::BucketState state{.bucket = report.bucket,
                                .epoch = report.epoch,
                                .lost = report.lost,
                                .detail = report.detail,
                                .failover = {},
                                .updates = report.updates};
  if (report.failover.replace.count() > 0) {
    state.failover = {.detect_seconds = Seconds(report.failover.detect),
                      .replace_seconds = Seconds(report.failover.replace),
                      .reconcile_seconds = Seconds(report.failover.reconcile)};
  }
  return state;
}

controller::StoredBuckets ToController(const parameter_server::StoredBuckets& stored) {
  controller::StoredBuckets message{.previous_incarnation = stored.previous_incarnation,
                                    .buckets = {}};
  for (const parameter_server::StoredBucket& bucket : stored.buckets) {
    message.buckets.push_back({.bucket = bucket.bucket,
                               .generation = bucket.generation,
                               .updates = bucket.updates,
                               .complete = bucket.complete,
                               .detail = bucket.detail,
                               .log_epoch = bucket.log_epoch,
                               .log_lsn = bucket.log_lsn});
  }
  return message;
}

controller::BucketProgress ToController(const parameter_server::BucketProgress& progress) {
  return {.bucket = progress.bucket,
          .epoch = progress.epoch,
          .committed = progress.committed,
          .lag = progress.lag,
          .updates = progress.updates,
          .serving = progress.serving};
}

controller::SnapshotBucket ToController(const parameter_server::SnapshotBucket& bucket) {
  return {.bucket = bucket.bucket,
          .epoch = bucket.epoch,
          .generation = bucket.generation,
          .updates = bucket.updates,
          .checksum = bucket.checksum};
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
