#include "services/common/tensor/shard_layout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/checksum.h"
#include "services/common/base/rng.h"
#include "services/common/tensor/initial_deviation.h"

namespace adamant {

ShardLayout::ShardLayout(std::vector<Parameter> parameters, std::uint32_t buckets)
    : parameters_(std::move(parameters)), buckets_(buckets) {
  ADAMANT_CHECK(buckets >= 1, "a layout needs a bucket");
  for (std::uint32_t tensor = 0; tensor < parameters_.size(); ++tensor) {
    const auto count = ElementCount(parameters_[tensor].shape);
    ADAMANT_CHECK(count.has_value(), "parameter shapes are checked when the model is built");
    const auto size = static_cast<std::uint64_t>(*count);
    first_shard_.push_back(shards_.size());
    offsets_.push_back(elements_);
    std::uint64_t begin = 0;
    do {
      const std::uint64_t end = std::min(begin + kShardElements, size);
      const auto id = static_cast<ShardId>(shards_.size());
      shards_.push_back({.id = id,
                         .tensor = tensor,
                         .begin = begin,
                         .end = end,
                         .bucket = static_cast<BucketId>(Mix64(id) % buckets)});
      begin = end;
    } while (begin < size);
    elements_ += size;
  }
  first_shard_.push_back(shards_.size());
}

std::span<const Shard> ShardLayout::ShardsOf(std::uint32_t tensor) const {
  return std::span(shards_).subspan(first_shard_[tensor],
                                    first_shard_[tensor + 1] - first_shard_[tensor]);
}

BucketId BucketOfRecord(std::string_view key, std::uint32_t buckets) {
  return static_cast<BucketId>(Checksum(std::as_bytes(std::span(key))) % buckets);
}

double InitialDeviation(const Parameter& parameter) {
  if (parameter.initialisation == Initialisation::kZero) {
    return 0;
  }
  const double gain = parameter.initialisation == Initialisation::kHe ? 2.0 : 1.0;
  return std::sqrt(gain / static_cast<double>(parameter.fan_in));
}

void InitialiseShard(std::uint64_t seed,
                     const Parameter& parameter,
                     const Shard& shard,
                     std::span<float> values) {
  ADAMANT_CHECK(values.size() == shard.size(), "one value per element of the shard");
  const double deviation = InitialDeviation(parameter);
  if (deviation == 0) {
    std::fill(values.begin(), values.end(), 0.0f);
    return;
  }
  Rng rng(MixSeed(seed, shard.tensor, shard.begin / ShardLayout::kShardElements));
  for (float& value : values) {
    value = static_cast<float>(deviation * rng.Normal());
  }
}

}  // namespace adamant
