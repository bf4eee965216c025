#include "services/parameter_server/core/storage/flusher.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "services/common/base/failpoint.h"
#include "services/common/base/system/files.h"
#include "services/parameter_server/core/storage/lazy_writer.h"

namespace adamant::parameter_server {
namespace {

constexpr auto kRetryAfter = std::chrono::seconds(1);

}  // namespace

Flusher::Flusher(const ShardTable& shards,
                 DirtyShards& dirty,
                 storage::KvStore& store,
                 const Clock& clock)
    : shards_(shards), dirty_(dirty), store_(store), clock_(clock) {}

Clock::TimePoint Flusher::DueAt() const {
  const Clock::TimePoint due = dirty_.DueAt();
  const MutexLock lock(mutex_);
  return due == Clock::TimePoint::max() ? due : std::max(due, not_before_);
}

absl::StatusOr<Flusher::Outcome> Flusher::Write() {
  ADAMANT_FAILPOINT("flush/begin");
  struct Taken {
    LiveShardPtr shard;
    std::uint64_t updates = 0;
  };
  std::vector<Taken> taken;
  LazyWriter writer(store_);
  absl::Status status;
  for (const DirtyShards::Entry& entry : dirty_.Take()) {
    LiveShardPtr shard = shards_.Get(entry.shard);
    if (shard == nullptr || !status.ok()) {
      continue;
    }
    std::uint64_t updates = 0;
    std::string record = shard->EncodeForFlush(updates);
    SealShard(record);
    taken.push_back({std::move(shard), updates});
    status = writer.Put(LiveShardKey(entry.shard), std::move(record));
  }
  if (status.ok()) {
    status = writer.Finish();
  }
  if (!status.ok()) {
    for (const Taken& each : taken) {
      each.shard->FlushFailed(each.updates);
    }
    dirty_.Return();
    return status;
  }
  ADAMANT_FAILPOINT("flush/raise_watermark");
  dirty_.Written();
  Outcome outcome{.bytes = writer.bytes()};
  for (const Taken& each : taken) {
    each.shard->Flushed();
    outcome.folded += each.updates > 0 ? each.updates - 1 : 0;
  }
  return outcome;
}

absl::Status Flusher::Flush() {
  const auto outcome = Write();
  const MutexLock lock(mutex_);
  if (absl::IsResourceExhausted(outcome.status())) {
    alarm_ = DescribeFull(outcome.status());
    not_before_ = clock_.Now() + kRetryAfter;
    return absl::OkStatus();
  }
  if (!outcome.ok()) {
    return outcome.status();
  }
  ADAMANT_FAILPOINT("flush/end");
  alarm_.clear();
  ++totals_.flushes;
  totals_.bytes += outcome->bytes;
  totals_.folded += outcome->folded;
  return absl::OkStatus();
}

std::string Flusher::alarm() const {
  const MutexLock lock(mutex_);
  return alarm_;
}

FlushTotals Flusher::totals() const {
  const MutexLock lock(mutex_);
  return totals_;
}

}  // namespace adamant::parameter_server
