#include "tests/bench/virtual_servers.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/status_macros.h"

namespace adamant::bench {
namespace {

namespace ps = parameter_server;

constexpr ps::Holder kSelf = {.slot = 0, .incarnation = 1};
constexpr std::uint64_t kEpoch = 1;

ps::Writer WriterOf(std::uint32_t worker) { return {.slot = worker, .incarnation = 1}; }

ps::ServerOptions ServerOptionsOf(const ShardLayout& layout, const VirtualServersOptions& options) {
  return {.job_uid = 1,
          .self = kSelf,
          .writers = options.workers,
          .seed = options.seed,
          .parameters = layout.parameters(),
          .buckets = layout.buckets(),
          .optimisers = options.optimisers,
          .mode = ps::PersistenceMode::kNone};
}

ps::UpdateKind KindOf(worker::UpdateKind kind) {
  switch (kind) {
    case worker::UpdateKind::kOuterProduct:
      return ps::UpdateKind::kOuterProduct;
    case worker::UpdateKind::kGradient:
      return ps::UpdateKind::kGradient;
    default:
      return ps::UpdateKind::kWeightChange;
  }
}

// The cores' enumerations mirror those of one proto file, in its order.
template <class To, class From>
To Same(From value) {
  return static_cast<To>(value);
}

/// Rows of one payload, each end to end.
struct Rows {
  std::deque<std::vector<float>> arrays;

  std::span<const float> Join(const std::vector<std::span<const float>>& pieces) {
    std::vector<float>& whole = arrays.emplace_back();
    for (const std::span<const float> piece : pieces) {
      whole.insert(whole.end(), piece.begin(), piece.end());
    }
    return whole;
  }
};

ps::Push PushOf(std::uint32_t worker,
                const worker::PushMessage& message,
                const worker::PushPayload& payload) {
  const auto rows = std::make_shared<Rows>();
  ps::Push push = {.writer = WriterOf(worker),
                   .job_examples = message.job_examples,
                   .examples = message.examples,
                   .correction = message.correction,
                   .owner = rows};
  for (const worker::PushPayload::Operands& operands : payload.operands) {
    push.operands.push_back({.tensor = operands.tensor,
                             .rows = static_cast<std::uint32_t>(operands.rows),
                             .inputs = static_cast<std::uint32_t>(operands.inputs),
                             .outputs = static_cast<std::uint32_t>(operands.outputs),
                             .activations = rows->Join(operands.activations),
                             .errors = rows->Join(operands.errors)});
  }
  for (std::size_t i = 0; i < message.updates.size(); ++i) {
    const worker::ShardUpdate& update = message.updates[i];
    push.updates.push_back({.shard = update.shard,
                            .bucket_epoch = update.bucket_epoch,
                            .sequence = message.sequence,
                            .fetched_version = update.fetched_version,
                            .after_loss = update.after_loss,
                            .kind = KindOf(payload.updates[i].kind),
                            .operands = static_cast<std::uint32_t>(payload.updates[i].operands),
                            .values = payload.updates[i].values});
  }
  return push;
}

worker::PushReply ReplyOf(std::uint64_t request, const std::vector<ps::ShardAck>& acks) {
  worker::PushReply reply = {.request = request};
  for (const ps::ShardAck& ack : acks) {
    reply.acks.push_back({.shard = ack.shard,
                          .outcome = Same<worker::UpdateOutcome>(ack.outcome),
                          .expected = ack.expected,
                          .staleness = ack.staleness,
                          .persisted = ack.persisted,
                          .epoch = ack.epoch,
                          .examples = ack.examples});
  }
  return reply;
}

}  // namespace

VirtualServers::VirtualServers(const ShardLayout& layout,
                               const VirtualServersOptions& options,
                               const Clock& clock)
    : layout_(layout),
      workers_(options.workers),
      server_(ServerOptionsOf(layout, options), store_, clock, *this) {}

absl::StatusOr<std::unique_ptr<VirtualServers>> VirtualServers::Start(
    const ShardLayout& layout, const VirtualServersOptions& options, const Clock& clock) {
  std::unique_ptr<VirtualServers> servers(new VirtualServers(layout, options, clock));
  ADAMANT_RETURN_IF_ERROR(servers->Begin());
  return servers;
}

absl::Status VirtualServers::Begin() {
  ADAMANT_RETURN_IF_ERROR(server_.ReadStored());
  for (std::uint32_t worker = 0; worker < workers_; ++worker) {
    ADAMANT_RETURN_IF_ERROR(server_.Admit(WriterOf(worker)));
  }
  ADAMANT_RETURN_IF_ERROR(Configure(/*created=*/false));
  return Configure(/*created=*/true);
}

// What the controller would say, and all that follows.
absl::Status VirtualServers::Configure(bool created) {
  const std::vector<ps::Configuration> buckets(
      layout_.buckets(),
      {.epoch = kEpoch, .generation = 1, .primary = kSelf, .members = {kSelf}, .created = created});
  server_.SetConfigurations(buckets, {});
  while (apply_ || storage_) {
    if (std::exchange(apply_, false)) {
      server_.ApplyCommitted();
    }
    if (std::exchange(storage_, false)) {
      ADAMANT_RETURN_IF_ERROR(server_.DoStorage());
    }
  }
  return absl::OkStatus();
}

worker::ClusterMap VirtualServers::Map() const {
  return {.version = 1,
          .buckets = std::vector<worker::BucketRecord>(
              layout_.buckets(), {.epoch = kEpoch, .generation = 1, .primary = kSelf.slot}),
          .part_owners = {0},
          .workers = workers_};
}

worker::PushReply VirtualServers::Apply(std::uint32_t worker,
                                        const worker::PushMessage& message,
                                        const worker::PushPayload& payload) {
  worker::PushReply reply;
  bool answered = false;
  server_.Submit(PushOf(worker, message, payload), [&](const std::vector<ps::ShardAck>& acks) {
    reply = ReplyOf(message.request, acks);
    answered = true;
  });
  ADAMANT_CHECK(answered, "a server without peers and disk answers at once");
  return reply;
}

absl::StatusOr<VirtualServers::Fetched> VirtualServers::Fetch(std::uint32_t worker,
                                                              const worker::FetchMessage& message) {
  const ps::Writer writer = WriterOf(worker);
  Fetched fetched = {.reply = {.request = message.request}};
  ADAMANT_ASSIGN_OR_RETURN(fetched.values,
                           server_.Fetch(&writer, message.shards, message.snapshot));
  for (const ps::ShardValue& value : fetched.values) {
    fetched.reply.shards.push_back({.shard = value.shard,
                                    .outcome = Same<worker::FetchOutcome>(value.outcome),
                                    .version = value.version,
                                    .included_sequence = value.included_sequence,
                                    .persisted = value.persisted,
                                    .epoch = value.epoch,
                                    .examples = value.examples});
  }
  return fetched;
}

absl::StatusOr<std::vector<float>> VirtualServers::Weights() {
  std::vector<ShardId> shards(layout_.shards().size());
  std::iota(shards.begin(), shards.end(), 0);
  ADAMANT_ASSIGN_OR_RETURN(const std::vector<ps::ShardValue> values,
                           server_.Fetch(nullptr, shards, /*snapshot=*/0));
  std::vector<float> weights(layout_.elements());
  for (const ps::ShardValue& value : values) {
    const Shard& shard = layout_.shards()[value.shard];
    std::ranges::copy(
        value.values,
        std::span(weights).subspan(layout_.OffsetOf(shard.tensor) + shard.begin).begin());
  }
  return weights;
}

}  // namespace adamant::bench
