#include "services/parameter_server/core/buckets/copies.h"

#include <algorithm>
#include <utility>

namespace adamant::parameter_server {

CopySender::CopySender(const ServerId& learner,
                       std::uint64_t copy,
                       std::uint32_t shards,
                       std::vector<std::string> keys)
    : learner_(learner),
      copy_(copy),
      shards_(shards),
      keys_(std::move(keys)),
      acked_(shards_ + keys_.size(), false) {}

bool CopySender::TakeNext(std::uint32_t& index) {
  if (sent_ == parts() || sent_ - done_ >= kWindow) {
    return false;
  }
  index = sent_++;
  return true;
}

bool CopySender::Acknowledged(std::uint32_t index) {
  if (parts() == 0) {
    return index != kNoPart;
  }
  if (index >= sent_ || acked_[index]) {
    return false;
  }
  acked_[index] = true;
  return ++done_ == parts();
}

CopyReceiver::CopyReceiver(std::uint64_t copy,
                           std::uint64_t generation,
                           std::uint32_t parts,
                           std::size_t shard_count)
    : shards(shard_count),
      sequences(shard_count),
      copy_(copy),
      generation_(generation),
      have_(parts, false),
      missing_(parts) {}

bool CopyReceiver::Mark(std::uint32_t index) {
  if (index >= have_.size() || have_[index]) {
    return false;
  }
  have_[index] = true;
  --missing_;
  last_index_ = index;
  return true;
}

bool CopyReceiver::Add(std::uint32_t index,
                       std::size_t position,
                       LiveShardPtr shard,
                       SequenceTable table) {
  if (!Mark(index)) {
    return false;
  }
  shards[position] = std::move(shard);
  sequences[position] = std::move(table);
  return true;
}

bool CopyReceiver::Add(std::uint32_t index, const CopiedRecord& record) {
  if (!Mark(index)) {
    return false;
  }
  records[record.key] = {.version = record.version, .value = record.value};
  return true;
}

bool CopyReceiver::Complete() const {
  return missing_ == 0 &&
         std::ranges::none_of(shards, [](const LiveShardPtr& shard) { return shard == nullptr; });
}

}  // namespace adamant::parameter_server
