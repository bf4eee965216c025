#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/tensor/shape.h"

namespace adamant {

/// Initial values of a parameter. They are drawn per shard from (seed, tensor, shard index), so any
/// server can make any shard.
enum class Initialisation {
  kZero,    ///< all 0 (biases)
  kHe,      ///< normal, standard deviation sqrt(2 / fan_in): layers followed by ReLU
  kXavier,  ///< normal, standard deviation sqrt(1 / fan_in): all other layers
};

/// One parameter tensor of a model, in the canonical layout: float32, row-major, convolution
/// weights [out, in / groups, height, width], fully connected weights [out, in], biases [out].
struct Parameter {
  std::string name;   ///< "fc1.weight"; unique in the model, also the name in exported files
  std::string layer;  ///< the layer it belongs to: "fc1"
  Shape shape;
  Initialisation initialisation = Initialisation::kZero;
  std::int64_t fan_in = 1;  ///< inputs that feed one output of the layer
  bool decays = true;       ///< takes weight decay (weights do, biases do not)
};

/// A contiguous range of one parameter tensor: the unit that is pushed, fetched, stored and
/// deduplicated.
struct Shard {
  ShardId id = 0;            ///< dense from 0 over all tensors, in order
  std::uint32_t tensor = 0;  ///< index into the parameters
  std::uint64_t begin = 0;   ///< first element within the tensor
  std::uint64_t end = 0;     ///< one past the last element
  BucketId bucket = 0;

  [[nodiscard]] std::uint64_t size() const { return end - begin; }
};

/// Division of a model's parameters into shards of at most 1 MB, which are hashed into buckets. The
/// same on every process of a job, because it depends on the model and the number of buckets alone.
/// Threads: immutable after construction.
class ShardLayout {
 public:
  static constexpr std::uint64_t kShardBytes = std::uint64_t{1} << 20;
  static constexpr std::uint64_t kShardElements = kShardBytes / sizeof(float);

  /// `buckets` >= 1. Every tensor has at least one shard; shapes must pass ElementCount.
  ShardLayout(std::vector<Parameter> parameters, std::uint32_t buckets);

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<Shard>& shards() const { return shards_; }
  [[nodiscard]] std::uint32_t buckets() const { return buckets_; }
  [[nodiscard]] std::uint64_t elements() const { return elements_; }

  /// The shards of one tensor, in order.
  [[nodiscard]] std::span<const Shard> ShardsOf(std::uint32_t tensor) const;

  /// Returns where a tensor starts when all are laid end to end, in elements.
  [[nodiscard]] std::uint64_t OffsetOf(std::uint32_t tensor) const { return offsets_[tensor]; }

 private:
  const std::vector<Parameter> parameters_;
  const std::uint32_t buckets_;
  std::vector<Shard> shards_;
  std::vector<std::size_t> first_shard_;  // by tensor; one more entry than tensors
  std::vector<std::uint64_t> offsets_;    // by tensor
  std::uint64_t elements_ = 0;
};

/// The bucket of the small record that the parameter servers keep under `key`. `buckets` >= 1.
BucketId BucketOfRecord(std::string_view key, std::uint32_t buckets);

/// Writes the initial values of `shard` (of `parameter`) into `values`, which has shard.size()
/// elements.
void InitialiseShard(std::uint64_t seed,
                     const Parameter& parameter,
                     const Shard& shard,
                     std::span<float> values);

}  // namespace adamant
