#include "services/parameter_server/core/shards/live_shard.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/failpoint.h"
#include "services/common/optimiser/rules.h"
#include "services/parameter_server/core/shards/outer_product.h"

namespace adamant::parameter_server {
namespace {

/// 32 KB: values, state and one update of a block fit the second-level cache of any CPU, and mostly
/// the first.
constexpr std::size_t kBlockElements = 8192;

/// Flushes remembered while another replica's disk lags behind.
constexpr std::size_t kMostFlushes = 8;

/// An update that is to be applied, ready for the loop over blocks.
struct Change {
  std::span<const float> values;
  bool is_gradient = false;
  RuleStep step = {};
  std::unique_ptr<float[]> product = nullptr;  // of an outer product: what `values` points to
};

void ApplyBlock(const Change& change, std::size_t begin, std::size_t size, ShardContent& to) {
  const auto values = std::span(to.values).subspan(begin, size);
  const auto block = change.values.subspan(begin, size);
  if (!change.is_gradient) {
    Add(block, values);
    return;
  }
  const std::size_t per_weight = StatePerWeight(change.step.kind);
  ApplyGradient(change.step,
                block,
                std::span(to.state).subspan(begin * per_weight, size * per_weight),
                values);
}

Change ChangeOf(const LoggedUpdate& update, const ShardRule& rule, std::size_t size) {
  Change change{.values = update.values,
                .is_gradient = update.kind != UpdateKind::kWeightChange,
                .step = rule.optimiser->At(update.job_examples, update.correction)};
  if (update.kind == UpdateKind::kOuterProduct) {
    change.product = std::make_unique_for_overwrite<float[]>(size);
    const std::span<float> product(change.product.get(), size);
    OuterProduct(update.operands->operands, rule.begin, product);
    change.values = product;
  }
  return change;
}

}  // namespace

LiveShard::LiveShard(const ShardIdentity& identity,
                     const ShardRule& rule,
                     ShardContent content,
                     DirtyShards& dirty)
    : identity_(identity), rule_(rule), dirty_(dirty), content_(std::move(content)) {
  flushed_.push_back({.lsn = content_.lsn, .sequences = content_.sequences});
  ADAMANT_CHECK(
      content_.values.size() == identity.values && content_.state.size() == identity.state,
      "a shard's content has its sizes");
}

// --- Applying

void LiveShard::Enqueue(CommittedUpdate update) {
  const MutexLock lock(queue_mutex_);
  queue_.push_back(std::move(update));
}

void LiveShard::ApplyIfFree() {
  const MutexLock lock(queue_mutex_);
  while (!applying_ && !queue_.empty()) {
    ApplyQueue();
  }
}

void LiveShard::Drain() {
  const MutexLock lock(queue_mutex_);
  while (applying_ || !queue_.empty()) {
    if (applying_) {
      applied_.Wait(queue_mutex_);
    } else {
      ApplyQueue();
    }
  }
}

void LiveShard::ApplyQueue() {
  applying_ = true;
  std::vector<CommittedUpdate> batch;
  batch.swap(queue_);
  queue_mutex_.Unlock();
  ADAMANT_FAILPOINT("server/apply");
  std::vector<ShardAck> acks(batch.size());
  ApplyBatch(batch, acks);
  ADAMANT_FAILPOINT("server/answer");
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].push != nullptr) {
      batch[i].push->Settle(batch[i].index, acks[i]);
    }
  }
  batch.clear();  // what the entries hold is freed outside the lock
  queue_mutex_.Lock();
  applying_ = false;
  applied_.NotifyAll();
}

void LiveShard::ApplyBatch(std::span<CommittedUpdate> batch, std::span<ShardAck> acks) {
  std::vector<Change> changes;
  changes.reserve(batch.size());
  // Products are multiplied out before the shard is held, so that it is busy only for its rule.
  for (const CommittedUpdate& update : batch) {
    changes.push_back(ChangeOf(*update.update, rule_, identity_.values));
  }
  const MutexLock lock(content_mutex_);
  std::vector<const Change*> admitted;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (Admit(batch[i], acks[i])) {
      admitted.push_back(&changes[i]);
    }
  }
  const std::size_t size = content_.values.size();
  for (std::size_t begin = 0; begin < size && !admitted.empty(); begin += kBlockElements) {
    for (const Change* change : admitted) {
      ApplyBlock(*change, begin, std::min(kBlockElements, size - begin), content_);
    }
  }
  MarkDirtyLocked();  // its lsn has risen in any case
  unflushed_updates_ += admitted.size();
}

// The primary has judged the update; here only what a copy brought already is left out.
bool LiveShard::Admit(const CommittedUpdate& update, ShardAck& ack) {
  const LoggedUpdate& logged = *update.update;
  const std::uint64_t before = content_.version;
  const bool next = update.entry->lsn > content_.lsn &&
                    content_.sequences.Admit(logged.writer, logged.sequence, logged.after_loss) ==
                        SequenceTable::Verdict::kNext;
  content_.lsn = std::max(content_.lsn, update.entry->lsn);
  content_.version += next ? 1 : 0;
  examples_ += next ? logged.examples : 0;
  ack = {.shard = identity_.shard,
         .outcome = next ? PushOutcome::kApplied : PushOutcome::kDuplicate,
         .expected = content_.sequences.LastOf(logged.writer) + 1,
         .version = content_.version,
         // After a restore the worker's version may be ahead.
         .update_staleness =
             next && before > logged.fetched_version ? before - logged.fetched_version : 0,
         .persisted = PersistedLocked(logged.writer),
         .configuration_version = update.configuration_version,
         .examples = examples_};
  return next;
}

// --- Reading

ShardValue LiveShard::Read(const WorkerId* asking) {
  Drain();
  const auto copy = std::make_shared_for_overwrite<float[]>(identity_.values);
  const MutexLock lock(content_mutex_);
  std::ranges::copy(content_.values, copy.get());
  return {
      {.shard = identity_.shard,
       .outcome = FetchOutcome::kFound,
       .version = content_.version,
       .included_sequence = asking != nullptr ? content_.sequences.LastOf(*asking) : Sequence(0),
       .persisted = asking != nullptr ? PersistedLocked(*asking) : Sequence(0),
       .examples = examples_},
      {copy.get(), identity_.values},
      copy};
}

std::uint64_t LiveShard::version() {
  Drain();
  const MutexLock lock(content_mutex_);
  return content_.version;
}

SequenceTable LiveShard::sequences() {
  Drain();
  const MutexLock lock(content_mutex_);
  return content_.sequences;
}

Sequence LiveShard::PersistedLocked(const WorkerId& writer) {
  while (!flushed_.empty() && flushed_.front().lsn <= durable_) {
    persisted_ = std::move(flushed_.front().sequences);
    flushed_.pop_front();
  }
  return rule_.durable_at_once ? content_.sequences.LastOf(writer) : persisted_.LastOf(writer);
}

Sequence LiveShard::PersistedOf(const WorkerId& writer) {
  const MutexLock lock(content_mutex_);
  return PersistedLocked(writer);
}

// --- Storing

std::string LiveShard::Encode() {
  Drain();
  const MutexLock lock(content_mutex_);
  return EncodeShard(identity_, content_);
}

std::string LiveShard::EncodeForFlush(std::uint64_t& updates) {
  Drain();
  const MutexLock lock(content_mutex_);
  updates += std::exchange(unflushed_updates_, 0);
  is_dirty_ = false;
  flushing_ = {.lsn = content_.lsn, .sequences = content_.sequences};
  return EncodeShard(identity_, content_);
}

void LiveShard::Flushed() {
  const MutexLock lock(content_mutex_);
  if (flushed_.size() == kMostFlushes) {
    flushed_.pop_back();  // the older ones are reached first
  }
  flushed_.push_back(flushing_);
}

void LiveShard::FlushFailed(std::uint64_t updates) {
  const MutexLock lock(content_mutex_);
  unflushed_updates_ += updates;
  is_dirty_ = true;
}

void LiveShard::MarkDirtyLocked() {
  if (!std::exchange(is_dirty_, true)) {
    dirty_.Add(identity_.shard, (identity_.values + identity_.state) * sizeof(float));
  }
}

void LiveShard::MarkDirty() {
  const MutexLock lock(content_mutex_);
  MarkDirtyLocked();
}

void LiveShard::Rebase(std::uint64_t generation) {
  Drain();
  const MutexLock lock(content_mutex_);
  content_.generation = generation;
  content_.lsn = 0;
  for (Flush& flush : flushed_) {
    flush.lsn = 0;
  }
}

}  // namespace adamant::parameter_server
