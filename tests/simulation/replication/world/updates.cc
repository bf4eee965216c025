#include "tests/simulation/replication/world/updates.h"

#include <bit>
#include <utility>

#include "services/common/base/rng.h"
#include "services/common/optimiser/rules.h"

namespace adamant::replication_simulation {

// Small integers, so that sums of them are exact.
std::array<float, kElements> ValuesOf(const UpdateKey& key) {
  constexpr std::uint64_t kMixed = 4096;
  const std::uint64_t mixed = MixSeed(key.slot, key.incarnation, key.sequence) % kMixed;
  return {static_cast<float>(key.slot + 1),
          static_cast<float>(key.incarnation),
          static_cast<float>(key.sequence),
          static_cast<float>(mixed)};
}

UpdateKey KeyOf(std::span<const float> values) {
  return {.slot = static_cast<std::uint32_t>(values[0]) - 1,
          .incarnation = static_cast<std::uint64_t>(values[1]),
          .sequence = static_cast<std::uint64_t>(values[2])};
}

std::uint64_t HashOf(std::span<const float> values) {
  std::uint64_t hash = values.size();
  for (const float value : values) {
    hash = MixSeed(hash, std::bit_cast<std::uint32_t>(value));
  }
  return hash;
}

std::uint64_t HashOf(const parameter_server::ShardContent& content) {
  std::uint64_t hash = MixSeed(content.version, HashOf(content.values), HashOf(content.state));
  for (const parameter_server::SequenceTable::Entry& entry : content.sequences.entries()) {
    hash = MixSeed(hash, entry.slot, entry.incarnation, entry.sequence);
  }
  return hash;
}

ReferenceShard::ReferenceShard(const ParameterOptimiser& optimiser,
                               parameter_server::ShardContent content)
    : optimiser_(&optimiser), content_(std::move(content)) {}

ReferenceShard::ReferenceShard(const ParameterOptimiser& optimiser) : optimiser_(&optimiser) {
  content_.values.resize(kElements);
  if (optimiser.location == OptimiserLocation::kServer) {
    content_.state.resize(kElements * StatePerWeight(optimiser.kind));
  }
}

void ReferenceShard::Apply(const UpdateKey& key, Sequence sequence) {
  const std::array<float, kElements> values = ValuesOf(key);
  if (optimiser_->location == OptimiserLocation::kServer) {
    ApplyGradient(optimiser_->At(0), values, content_.state, content_.values);
  } else {
    Add(values, content_.values);
  }
  content_.sequences.Admit({key.slot, key.incarnation}, sequence, true);
  ++content_.version;
}

}  // namespace adamant::replication_simulation
