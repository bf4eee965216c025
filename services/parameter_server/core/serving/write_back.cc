#include "services/parameter_server/core/serving/write_back.h"

#include <algorithm>
#include <cstdint>

#include "services/common/base/status_macros.h"

namespace adamant::parameter_server {

std::vector<FlushedBucket> WriteBack::Begin() {
  std::vector<FlushedBucket> flushed;
  std::vector<LiveShardPtr> shards;
  {
    const BucketTable::View view(table_);
    for (const auto& bucket : view.buckets()) {
      flushed.push_back({.life = bucket->life(),
                         .origin = bucket->replica().log().committed_origin(),
                         .committed = bucket->replica().log().committed()});
      shards.insert(shards.end(), bucket->content().shards.begin(), bucket->content().shards.end());
    }
    for (const auto& [bucket, lsn] : queue_.LowestPuts()) {
      Lsn& committed = flushed[bucket].committed;
      committed = std::min(committed, lsn - 1);
    }
  }
  // What is committed and still queues at a clean shard would not be flushed.
  for (const LiveShardPtr& shard : shards) {
    shard->Drain();
  }
  return flushed;
}

void WriteBack::End(std::span<const FlushedBucket> flushed) {
  bool complete = true;
  {
    BucketTable::Session session(table_);
    for (BucketId id = 0; id < flushed.size(); ++id) {
      Bucket& bucket = session.bucket(id);
      if (bucket.life() == flushed[id].life) {
        bucket.replica().Flushed(flushed[id].committed);
        bucket.RaiseDurable(bucket.replica().durable());
        complete = complete && bucket.replica().log().IsFlushed();
      }
    }
  }
  // Changes behind a record that was not stored yet, or of while the flush began, may be written
  // and their shards clean: no other flush would come, and who waits to hear of it waits for ever.
  if (!complete) {
    dirty_.FlushAgain();
  }
}

absl::Status WriteBack::Flush() {
  std::vector<FlushedBucket> flushed = Begin();
  const std::uint64_t before = flusher_.totals().flushes;
  ADAMANT_RETURN_IF_ERROR(flusher_.Flush());
  if (flusher_.totals().flushes == before) {
    return absl::OkStatus();
  }
  for (BucketId id = 0; id < flushed.size(); ++id) {
    if (!table_.Lives(id, flushed[id].life)) {
      flushed[id].committed = 0;  // its shards may have gone before they were written
    }
  }
  if (!IsDurableAtOnce(store_.mode())) {
    End(flushed);
  }
  return store_.EraseFlushed(flushed);
}

}  // namespace adamant::parameter_server
