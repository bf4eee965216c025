#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "services/common/optimiser/rules.h"
#include "services/parameter_server/core/outer_product.h"
#include "services/parameter_server/core/parameter_server.h"

// ParameterServer::Apply: what is checked before an update may reach its shard, and how it gets
// there.
namespace adamant::parameter_server {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

bool AllFinite(const Push& push) {
  const bool dense = std::ranges::all_of(push.updates, [](const ShardUpdate& update) {
    return MaxMagnitude(update.values) <= kLargest;
  });
  // The bound on the sums also keeps products of large finite operands from overflowing.
  return dense && std::ranges::all_of(push.operands, [](const Operands& operands) {
           const double bound = static_cast<double>(MaxMagnitude(operands.activations)) *
                                MaxMagnitude(operands.errors) * operands.rows;
           return bound <= kLargest;
         });
}

std::vector<ShardAck> RefuseWhole(const Push& push, PushOutcome outcome) {
  std::vector<ShardAck> acks;
  for (const ShardUpdate& update : push.updates) {
    acks.push_back({.shard = update.shard, .outcome = outcome});
  }
  return acks;
}

bool HasSize(std::span<const float> values, std::uint32_t rows, std::uint32_t columns) {
  return values.size() == std::uint64_t{rows} * columns;
}

}  // namespace

bool ParameterServer::WellFormed(const Push& push, const ShardUpdate& update) const {
  if (update.shard >= layout_.shards().size() || update.sequence == 0) {
    return false;
  }
  const Shard& shard = layout_.shards()[update.shard];
  const bool on_server = options_.optimisers[shard.tensor].location == OptimiserLocation::kServer;
  if ((update.kind == UpdateKind::kWeightChange) == on_server) {
    return false;
  }
  if (update.kind == UpdateKind::kOuterProduct) {
    return update.operands < push.operands.size() &&
           push.operands[update.operands].tensor == shard.tensor && update.values.empty();
  }
  return update.values.size() == shard.size();
}

bool ParameterServer::WellFormed(const Push& push) const {
  const auto& parameters = layout_.parameters();
  for (const Operands& operands : push.operands) {
    const bool fits =
        operands.rows > 0 && operands.tensor < parameters.size() &&
        parameters[operands.tensor].shape == Shape{operands.outputs, operands.inputs} &&
        HasSize(operands.activations, operands.rows, operands.inputs) &&
        HasSize(operands.errors, operands.rows, operands.outputs);
    if (!fits) {
      return false;
    }
  }
  return std::ranges::all_of(push.updates,
                             [&](const ShardUpdate& update) { return WellFormed(push, update); });
}

bool ParameterServer::IsStale(const Writer& writer) const {
  const MutexLock lock(mutex_);
  const auto newest = newest_.find(writer.slot);
  return newest != newest_.end() && writer.incarnation < newest->second;
}

/// A routed update, with the gradient that an outer product was multiplied out to.
struct ParameterServer::InFlight {
  std::shared_ptr<LiveShard> shard;  ///< null: refused by `update.ack`
  std::unique_ptr<float[]> gradient;
  PendingUpdate update;
};

void ParameterServer::RouteUpdate(const Push& push, const ShardUpdate& update, InFlight& flight) {
  BucketTable::Route route = buckets_.Find(update.shard, update.bucket_epoch);
  if (route.access != BucketTable::Access::kReady) {
    const bool elsewhere = route.access == BucketTable::Access::kNotPrimary;
    flight.update.ack = {.shard = update.shard,
                         .outcome = elsewhere ? PushOutcome::kNotPrimary : PushOutcome::kNotReady};
    return;
  }
  const Shard& shard = layout_.shards()[update.shard];
  flight.shard = std::move(route.shard);
  flight.update = {.writer = push.writer,
                   .sequence = update.sequence,
                   .fetched_version = update.fetched_version,
                   .after_loss = update.after_loss,
                   .is_gradient = update.kind != UpdateKind::kWeightChange,
                   .step = options_.optimisers[shard.tensor].At(push.job_examples),
                   .values = update.values};
  if (update.kind == UpdateKind::kOuterProduct) {
    // Multiplied on the thread that pushes, so that the shard is busy only for its rule.
    flight.gradient = std::make_unique_for_overwrite<float[]>(shard.size());
    const std::span<float> gradient(flight.gradient.get(), shard.size());
    OuterProduct(push.operands[update.operands], shard.begin, gradient);
    flight.update.values = gradient;
  }
  flight.shard->Enqueue(flight.update);
}

std::vector<ShardAck> ParameterServer::Apply(const Push& push) {
  if (push.writer.slot >= options_.writers || !WellFormed(push)) {
    return RefuseWhole(push, PushOutcome::kMalformed);
  }
  if (IsStale(push.writer)) {
    return RefuseWhole(push, PushOutcome::kStaleIncarnation);
  }
  if (!AllFinite(push)) {
    return RefuseWhole(push, PushOutcome::kNotFinite);
  }
  std::vector<InFlight> flights(push.updates.size());
  for (std::size_t i = 0; i < flights.size(); ++i) {
    RouteUpdate(push, push.updates[i], flights[i]);
  }
  // First what is free, so that a busy shard does not keep this thread from the others.
  for (const InFlight& flight : flights) {
    if (flight.shard != nullptr) {
      flight.shard->ApplyIfFree();
    }
  }
  std::vector<ShardAck> acks;
  for (InFlight& flight : flights) {
    if (flight.shard != nullptr) {
      flight.shard->Await(flight.update);
    }
    updates_applied_ += flight.update.ack.outcome == PushOutcome::kApplied ? 1 : 0;
    acks.push_back(flight.update.ack);
  }
  return acks;
}

}  // namespace adamant::parameter_server
