#pragma once

#include <cstdint>
#include <vector>

#include "services/common/base/ids.h"

namespace adamant::data_server {

/// The order of an epoch's examples: a permutation of 0..examples-1, a function of its arguments
/// alone. Time and memory O(examples). Threads: any.
/// Source: Fisher and Yates, in Durstenfeld's form.
std::vector<std::uint32_t> EpochOrder(std::uint64_t seed, DataEpoch epoch, std::uint32_t examples);

/// Division of an epoch's order: example i of the order belongs to part i mod parts; within a part,
/// batch k is the k-th run of batch_size examples (the last one may be shorter).
/// Threads: any.
class PartLayout {
 public:
  /// parts >= 1, batch_size >= 1.
  PartLayout(std::uint32_t examples, std::uint32_t parts, std::uint32_t batch_size);

  [[nodiscard]] std::uint32_t examples() const { return examples_; }
  [[nodiscard]] std::uint32_t parts() const { return parts_; }
  [[nodiscard]] std::uint32_t batch_size() const { return batch_size_; }

  /// Examples of a part.
  [[nodiscard]] std::uint32_t PartExamples(std::uint32_t part) const;

  /// Batches of a part.
  [[nodiscard]] std::uint32_t Batches(std::uint32_t part) const;

  /// Examples of a batch.
  [[nodiscard]] std::uint32_t BatchExamples(std::uint32_t part, std::uint32_t batch) const;

  /// Position in the epoch's order of example `i` of a batch.
  [[nodiscard]] std::uint32_t Position(std::uint32_t part,
                                       std::uint32_t batch,
                                       std::uint32_t i) const;

 private:
  const std::uint32_t examples_;
  const std::uint32_t parts_;
  const std::uint32_t batch_size_;
};

}  // namespace adamant::data_server
