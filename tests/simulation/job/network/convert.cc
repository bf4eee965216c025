#include "tests/simulation/job/network/convert.h"

#include <deque>
#include <memory>

namespace adamant::simulation {
namespace {

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

}  // namespace

parameter_server::Push ToParameterServer(const parameter_server::WorkerId& writer,
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
    const worker::RoutedUpdate& update = frame.header.updates[i];
    const worker::PushPayload::Update& content = frame.payload.updates[i];
    push.updates.push_back({.shard = update.shard,
                            .bucket_version = update.bucket_version,
                            .sequence = frame.header.sequence,
                            .fetched_version = update.fetched_version,
                            .after_loss = update.after_loss,
                            .kind = content.kind,
                            .operands = static_cast<std::uint32_t>(content.operands),
                            .values = received->Keep({content.values})});
  }
  return push;
}

worker::PushReply ToWorker(std::uint64_t request,
                           const std::vector<parameter_server::ShardAck>& acks) {
  return {.request = request, .acks = acks};
}

worker::FetchReply ToWorker(std::uint64_t request,
                            const std::vector<parameter_server::ShardValue>& values) {
  worker::FetchReply reply{.request = request};
  for (const parameter_server::ShardValue& value : values) {
    reply.shards.push_back({.shard = value.shard,
                            .outcome = value.outcome,
                            .version = value.version,
                            .included_sequence = value.included_sequence,
                            .persisted = value.persisted,
                            .configuration_version = value.configuration_version});
  }
  return reply;
}

}  // namespace adamant::simulation
