#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "services/common/base/check.h"
#include "services/common/base/ids.h"
#include "services/common/optimiser/rules.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/base/update_plan.h"
#include "services/worker/core/sync/pushes/push_payload.h"

namespace adamant::worker {

/// Parameter servers (two, buckets alternate) and a data server, in memory. They forget what is not
/// on their disk when the test says so.
class FakeServers {
 public:
  FakeServers(const ShardLayout& layout, const UpdatePlan& plan)
      : layout_(layout),
        plan_(plan),
        weights_(plan.elements),
        state_(plan.elements),
        included_(layout.shards().size()) {
    for (const Shard& shard : layout.shards()) {
      InitialiseShard(3, layout.parameters()[shard.tensor], shard, Range(weights_, shard));
    }
    WriteToDisk();
  }

  [[nodiscard]] PlacementView Placement() const {
    PlacementView placement = {.version = version_.value(), .buckets = {}, .part_owners = {0}};
    for (BucketId bucket = 0; bucket < layout_.buckets(); ++bucket) {
      placement.buckets.push_back(
          {.version = version_, .generation = version_.value(), .primary = bucket % 2});
    }
    return placement;
  }

  void WriteToDisk() { disk_ = {.weights = weights_, .state = state_, .included = included_}; }

  /// All of them die, and come back with what is on disk.
  void Restart() {
    ++version_;
    weights_ = disk_.weights;
    state_ = disk_.state;
    included_ = disk_.included;
  }

  PushReply Apply(const PushMessage& message, const PushPayload& payload) {
    PushReply reply = {.request = message.request};
    correction_ = message.terms.correction;
    for (std::size_t i = 0; i < message.updates.size(); ++i) {
      const Shard& shard = layout_.shards()[message.updates[i].shard];
      ShardAck& ack = reply.acks.emplace_back();
      ack = {.shard = shard.id,
             .outcome = PushOutcome::kApplied,
             .persisted = disk_.included[shard.id],
             .configuration_version = version_};
      Sequence& included = included_[shard.id];
      if (message.sequence() <= included) {
        ack.outcome = PushOutcome::kDuplicate;
        continue;
      }
      if (message.sequence() > included + 1 && !message.updates[i].after_loss) {
        ack.outcome = PushOutcome::kUnexpectedSequence;
        ack.expected = included + 1;
        continue;
      }
      included = message.sequence();
      const ShardUpdate& update = payload.updates[i];
      const TensorPlan& tensor = plan_.tensors[shard.tensor];
      const std::span<float> weights = Range(weights_, shard);
      if (update.kind == UpdateKind::kWeightChange) {
        Add(update.values, weights);
      } else {
        std::vector<float> gradient(update.values.begin(), update.values.end());
        if (update.kind == UpdateKind::kOuterProduct) {
          gradient = Product(payload.operands[update.operands], shard);
        }
        const RuleStep step = tensor.optimiser.At(message.terms.job_examples);
        const std::size_t state = StatePerWeight(step.kind) * shard.size();
        ApplyGradient(step, gradient, Range(state_, shard).first(state), weights);
      }
    }
    return reply;
  }

  FetchReply Fetch(const FetchMessage& message, std::vector<float>& values) const {
    FetchReply reply = {.request = message.request};
    for (const ShardId id : message.shards) {
      const Shard& shard = layout_.shards()[id];
      reply.shards.push_back({.shard = id,
                              .version = included_[id],
                              .included_sequence = included_[id],
                              .persisted = disk_.included[id],
                              .configuration_version = version_});
      const std::uint64_t begin = layout_.OffsetOf(shard.tensor) + shard.begin;
      values.insert(values.end(),
                    weights_.begin() + static_cast<std::ptrdiff_t>(begin),
                    weights_.begin() + static_cast<std::ptrdiff_t>(begin + shard.size()));
    }
    return reply;
  }

  [[nodiscard]] FlushReply Flush(const FlushMessage& message) const {
    FlushReply reply = {.request = message.request};
    for (const ShardId shard : message.shards) {
      reply.persisted.push_back({.shard = shard, .sequence = disk_.included[shard]});
    }
    return reply;
  }

  [[nodiscard]] const std::vector<float>& weights() const { return weights_; }
  std::vector<float>& weights() { return weights_; }

  /// What the last push asked for.
  [[nodiscard]] const Correction& correction() const { return correction_; }

 private:
  std::span<float> Range(std::vector<float>& values, const Shard& shard) const {
    return std::span(values).subspan(layout_.OffsetOf(shard.tensor) + shard.begin, shard.size());
  }

  static std::vector<float> Product(const PushPayload::Operands& operands, const Shard& shard) {
    std::vector<float> activations, errors;
    for (const auto piece : operands.activations) {
      activations.insert(activations.end(), piece.begin(), piece.end());
    }
    for (const auto piece : operands.errors) {
      errors.insert(errors.end(), piece.begin(), piece.end());
    }
    std::vector<float> gradient;
    for (std::uint64_t k = shard.begin; k < shard.end; ++k) {
      float sum = 0;
      for (std::uint64_t row = 0; row < operands.rows; ++row) {
        sum += errors[row * operands.outputs + k / operands.inputs] *
               activations[row * operands.inputs + k % operands.inputs];
      }
      gradient.push_back(sum);
    }
    return gradient;
  }

  const ShardLayout& layout_;
  const UpdatePlan& plan_;
  std::vector<float> weights_;
  std::vector<float> state_;
  std::vector<Sequence> included_;  // by shard
  ConfigurationVersion version_ = 1;
  Correction correction_;

  struct Disk {
    std::vector<float> weights;
    std::vector<float> state;
    std::vector<Sequence> included;
  };
  Disk disk_;
};

}  // namespace adamant::worker
