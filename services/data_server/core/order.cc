#include "services/data_server/core/order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/rng.h"

namespace adamant::data_server {

std::vector<std::uint32_t> EpochOrder(std::uint64_t seed, DataEpoch epoch, std::uint32_t examples) {
  std::vector<std::uint32_t> order(examples);
  std::iota(order.begin(), order.end(), 0u);
  Rng rng(MixSeed(seed, epoch));
  for (std::uint32_t left = examples; left > 1; --left) {
    std::swap(order[left - 1], order[rng.Below(left)]);
  }
  return order;
}

PartLayout::PartLayout(std::uint32_t examples, std::uint32_t parts, std::uint32_t batch_size)
    : examples_(examples), parts_(parts), batch_size_(batch_size) {
  ADAMANT_CHECK(parts >= 1 && batch_size >= 1, "there is at least one part, and one example each");
}

std::uint32_t PartLayout::PartExamples(std::uint32_t part) const {
  return examples_ / parts_ + (part < examples_ % parts_ ? 1 : 0);
}

std::uint32_t PartLayout::Batches(std::uint32_t part) const {
  const std::uint32_t examples = PartExamples(part);
  return examples / batch_size_ + (examples % batch_size_ != 0 ? 1 : 0);
}

std::uint32_t PartLayout::BatchExamples(std::uint32_t part, std::uint32_t batch) const {
  return std::min(batch_size_, PartExamples(part) - batch * batch_size_);
}

std::uint32_t PartLayout::Position(std::uint32_t part, std::uint32_t batch, std::uint32_t i) const {
  return part + (batch * batch_size_ + i) * parts_;
}

}  // namespace adamant::data_server
