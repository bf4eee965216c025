#include "services/parameter_server/core/live_shard.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/optimiser/rules.h"

namespace adamant::parameter_server {
namespace {

/// 32 KB: values, state and one update of a block fit the second-level cache of any CPU, and mostly
/// the first.
constexpr std::size_t kBlockElements = 8192;

void ApplyBlock(const PendingUpdate& update,
                std::size_t begin,
                std::size_t size,
                ShardContent& to) {
  const auto values = std::span(to.values).subspan(begin, size);
  const auto change = update.values.subspan(begin, size);
  if (!update.is_gradient) {
    Add(change, values);
    return;
  }
  const std::size_t per_weight = StatePerWeight(update.step.kind);
  ApplyGradient(update.step,
                change,
                std::span(to.state).subspan(begin * per_weight, size * per_weight),
                values);
}

PushOutcome OutcomeOf(SequenceTable::Verdict verdict) {
  switch (verdict) {
    case SequenceTable::Verdict::kNext:
      return PushOutcome::kApplied;
    case SequenceTable::Verdict::kDuplicate:
      return PushOutcome::kDuplicate;
    case SequenceTable::Verdict::kUnexpected:
      return PushOutcome::kUnexpectedSequence;
    case SequenceTable::Verdict::kStale:
      return PushOutcome::kStaleIncarnation;
  }
  return PushOutcome::kMalformed;
}

}  // namespace

LiveShard::LiveShard(const ShardIdentity& identity, ShardContent content, DirtyShards& dirty)
    : identity_(identity), dirty_(dirty), content_(std::move(content)) {
  ADAMANT_CHECK(
      content_.values.size() == identity.values && content_.state.size() == identity.state,
      "a shard's content has its sizes");
}

void LiveShard::Enqueue(PendingUpdate& update) {
  ADAMANT_CHECK(update.values.size() == identity_.values, "an update has the shard's size");
  const MutexLock lock(queue_mutex_);
  queue_.push_back(&update);
}

void LiveShard::ApplyIfFree() {
  const MutexLock lock(queue_mutex_);
  if (!applying_ && !queue_.empty()) {
    ApplyQueue();
  }
}

void LiveShard::Await(PendingUpdate& update) {
  const MutexLock lock(queue_mutex_);
  while (!update.settled) {
    if (applying_) {
      settled_.Wait(queue_mutex_);
    } else {
      ApplyQueue();
    }
  }
}

void LiveShard::ApplyQueue() {
  applying_ = true;
  std::vector<PendingUpdate*> batch;
  batch.swap(queue_);
  queue_mutex_.Unlock();
  ApplyBatch(batch);
  queue_mutex_.Lock();
  for (PendingUpdate* update : batch) {
    update->settled = true;
  }
  applying_ = false;
  settled_.NotifyAll();
}

void LiveShard::ApplyBatch(std::span<PendingUpdate* const> batch) {
  const MutexLock lock(content_mutex_);
  std::vector<const PendingUpdate*> admitted;
  for (PendingUpdate* update : batch) {
    if (Admit(*update)) {
      admitted.push_back(update);
    }
  }
  if (admitted.empty()) {
    return;
  }
  const std::size_t size = content_.values.size();
  for (std::size_t begin = 0; begin < size; begin += kBlockElements) {
    for (const PendingUpdate* update : admitted) {
      ApplyBlock(*update, begin, std::min(kBlockElements, size - begin), content_);
    }
  }
  if (unflushed_updates_ == 0) {
    dirty_.Add(identity_.shard, (identity_.values + identity_.state) * sizeof(float));
  }
  unflushed_updates_ += admitted.size();
}

bool LiveShard::Admit(PendingUpdate& update) {
  SequenceTable& sequences = content_.sequences;
  const auto verdict = sequences.Admit(update.writer, update.sequence, update.after_loss);
  const bool next = verdict == SequenceTable::Verdict::kNext;
  const std::uint64_t before = content_.version;
  content_.version += next ? 1 : 0;
  update.ack = {
      .shard = identity_.shard,
      .outcome = OutcomeOf(verdict),
      .expected = sequences.LastOf(update.writer) + 1,
      .version = content_.version,
      // After a rollback the worker's version may be ahead.
      .staleness = next && before > update.fetched_version ? before - update.fetched_version : 0};
  return next;
}

ShardValue LiveShard::Read(const Writer* asking) const {
  const auto copy = std::make_shared_for_overwrite<float[]>(identity_.values);
  const MutexLock lock(content_mutex_);
  std::ranges::copy(content_.values, copy.get());
  return {.shard = identity_.shard,
          .outcome = FetchOutcome::kFound,
          .version = content_.version,
          .included_sequence = asking != nullptr ? content_.sequences.LastOf(*asking) : 0,
          .values = {copy.get(), identity_.values},
          .owner = copy};
}

std::string LiveShard::Encode() const {
  const MutexLock lock(content_mutex_);
  return EncodeShard(identity_, content_);
}

std::string LiveShard::EncodeForFlush(std::uint64_t& updates) {
  const MutexLock lock(content_mutex_);
  updates += std::exchange(unflushed_updates_, 0);
  return EncodeShard(identity_, content_);
}

void LiveShard::FlushFailed(std::uint64_t updates) {
  const MutexLock lock(content_mutex_);
  unflushed_updates_ += updates;
}

}  // namespace adamant::parameter_server
