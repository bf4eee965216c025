#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/optimiser/optimiser.h"
#include "services/parameter_server/core/shards/shard_content.h"
#include "services/parameter_server/core/updates/messages.h"

namespace adamant::replication_simulation {

/// Of every shard.
inline constexpr std::size_t kElements = 4;

/// One update to a shard. It is all that the update's values say, so that they tell which it was,
/// whatever the servers believe.
struct UpdateKey {
  std::uint32_t slot = 0;  ///< of the writer
  Incarnation incarnation = 0;
  Sequence sequence = 0;

  auto operator<=>(const UpdateKey&) const = default;
};

std::array<float, kElements> ValuesOf(const UpdateKey& key);
UpdateKey KeyOf(std::span<const float> values);

/// Of the values alone, and of all that a shard is: values, state of the optimiser, sequences.
std::uint64_t HashOf(std::span<const float> values);
std::uint64_t HashOf(const parameter_server::ShardContent& content);

/// What a shard must hold after some updates.
/// Threads: one.
class ReferenceShard {
 public:
  /// `optimiser` must outlive this.
  explicit ReferenceShard(const ParameterOptimiser& optimiser);
  ReferenceShard(const ParameterOptimiser& optimiser, parameter_server::ShardContent content);

  /// `sequence`: under which the server took it.
  void Apply(const UpdateKey& key, Sequence sequence);

  [[nodiscard]] const parameter_server::ShardContent& content() const { return content_; }

 private:
  const ParameterOptimiser* optimiser_;
  parameter_server::ShardContent content_;
};

}  // namespace adamant::replication_simulation
