#include "services/parameter_server/core/storage/bucket_store.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/storage/entry_record.h"
#include "services/parameter_server/core/storage/lazy_writer.h"

namespace adamant::parameter_server {
namespace {

constexpr Lsn kToTheEnd = std::numeric_limits<Lsn>::max();

}  // namespace

BucketStore::BucketStore(PersistenceMode mode, const ShardCatalog& catalog, storage::KvStore& store)
    : mode_(mode),
      catalog_(catalog),
      store_(store),
      logged_until_(catalog.layout().buckets(), 0),
      erased_until_(catalog.layout().buckets(), 0) {}

// --- Reading

absl::StatusOr<StoredContent> BucketStore::Load(BucketId id) const {
  return LoadContent(catalog_.job_uid(), id, catalog_.IdentitiesOf(id), catalog_.layout(), store_);
}

absl::StatusOr<std::uint64_t> BucketStore::CheckShard(ShardId id) const {
  ADAMANT_ASSIGN_OR_RETURN(const std::string stored, store_.Get(LiveShardKey(id)));
  ADAMANT_RETURN_IF_ERROR(DecodeShard(catalog_.IdentityOf(id), stored).status());
  return stored.size();
}

absl::StatusOr<std::uint64_t> BucketStore::CheckRecords(BucketId id) const {
  ADAMANT_ASSIGN_OR_RETURN(const RecordMap stored, LoadRecords(catalog_.job_uid(), id, store_));
  std::uint64_t bytes = 0;
  for (const auto& [key, record] : stored) {
    bytes += record.value.size();
  }
  return bytes;
}

// --- Whole buckets

absl::Status BucketStore::Unmark(const std::set<BucketId>& buckets) {
  std::vector<storage::Change> changes;
  for (const BucketId bucket : buckets) {
    changes.push_back(UnmarkBucket(bucket));
    changes.push_back(EraseRecords(bucket));
    std::ranges::move(EraseLog(bucket), std::back_inserter(changes));
  }
  return changes.empty() ? absl::OkStatus() : store_.Write(changes);
}

// The shards that came back from live state are stored already, unless updates were logged. Records
// that had only been logged are not, and their log ends with the old generation.
absl::Status BucketStore::StoreLoaded(BucketId id, const Bucket::Content& content, bool is_new) {
  if (is_new || IsLogged(mode_)) {
    return StoreContent(id, content, EraseLog(id));
  }
  return mode_ == PersistenceMode::kNone ? absl::OkStatus()
                                         : StoreRecords(id, content, EraseLog(id));
}

absl::Status BucketStore::StoreCopy(BucketId id,
                                    const Bucket::Content& content,
                                    ConfigurationVersion origin,
                                    Lsn committed) {
  std::vector<storage::Change> changes;
  if (IsLogged(mode_)) {
    changes.push_back(StoreLogEnd(id, origin, committed));
  }
  return StoreContent(id, content, std::move(changes));
}

std::vector<storage::Change> BucketStore::EraseLog(BucketId id) {
  logged_until_[id] = 0;
  erased_until_[id] = 0;
  return {EraseEntries(id, 0, kToTheEnd), EraseLogEnd(id)};
}

// At once with `changes`.
absl::Status BucketStore::StoreRecords(BucketId id,
                                       const Bucket::Content& content,
                                       std::vector<storage::Change> changes) {
  changes.push_back(EraseRecords(id));
  for (const auto& [key, record] : content.records) {
    changes.push_back(StoreRecord(catalog_.job_uid(), id, key, record));
  }
  changes.push_back(MarkBucket(id, content.generation));
  return store_.Write(changes);
}

// All of a bucket, durably, in place of whatever was stored of it.
absl::Status BucketStore::StoreContent(BucketId id,
                                       const Bucket::Content& content,
                                       std::vector<storage::Change> changes) {
  if (mode_ == PersistenceMode::kNone) {
    return absl::OkStatus();
  }
  if (!content.shards.empty()) {  // else, of which a job may have thousands, nothing waits for it
    LazyWriter writer(store_);
    for (const LiveShardPtr& shard : content.shards) {
      std::string record = shard->Encode();
      SealShard(record);
      ADAMANT_RETURN_IF_ERROR(writer.Put(LiveShardKey(shard->identity().shard), std::move(record)));
    }
    ADAMANT_RETURN_IF_ERROR(writer.Finish());
  }
  ADAMANT_FAILPOINT("server/mark");
  return StoreRecords(id, content, std::move(changes));
}

// --- Logs and records

absl::Status BucketStore::WriteEntries(std::span<const PersistTask> tasks) {
  std::vector<storage::Change> changes;
  bool sync = mode_ == PersistenceMode::kWalSync;
  for (const PersistTask& task : tasks) {
    const Lsn lsn = task.entry->lsn;
    if (lsn <= logged_until_[task.bucket]) {
      changes.push_back(EraseEntries(task.bucket, lsn - 1, kToTheEnd));
    }
    logged_until_[task.bucket] = lsn;
    erased_until_[task.bucket] = std::min(erased_until_[task.bucket], lsn - 1);
    changes.push_back(StoreEntry(task.bucket, task.generation, *task.entry));
    sync = sync || !task.entry->puts.empty();  // records do not roll back
  }
  ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("log/write"));
  return sync ? store_.Write(changes) : store_.WriteLogged(changes);
}

absl::Status BucketStore::WriteRecords(std::span<const CommittedRecord> records) {
  std::vector<storage::Change> changes;
  std::map<BucketId, Lsn> written;
  for (const CommittedRecord& each : records) {
    changes.push_back(StoreRecord(catalog_.job_uid(), each.bucket, each.key, each.record));
    written[each.bucket] = std::max(written[each.bucket], each.lsn);
  }
  // Where only records are logged, the log is done with once they are written.
  if (IsLogged(mode_)) {
    written.clear();
  }
  for (const auto& [bucket, lsn] : written) {
    if (lsn > erased_until_[bucket]) {
      changes.push_back(EraseEntries(bucket, erased_until_[bucket], lsn));
    }
  }
  ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("record/write"));
  ADAMANT_RETURN_IF_ERROR(store_.Write(changes));
  for (const auto& [bucket, lsn] : written) {
    erased_until_[bucket] = std::max(erased_until_[bucket], lsn);
  }
  return absl::OkStatus();
}

absl::Status BucketStore::EraseFlushed(std::span<const FlushedBucket> flushed) {
  std::vector<storage::Change> changes;
  for (BucketId id = 0; id < flushed.size(); ++id) {
    const auto& [life, origin, end] = flushed[id];
    if (IsLogged(mode_) && end > 0 && logged_until_[id] > 0) {
      if (end > erased_until_[id]) {
        changes.push_back(EraseEntries(id, erased_until_[id], end));
      }
      changes.push_back(StoreLogEnd(id, origin, end));
    }
  }
  ADAMANT_FAILPOINT("flush/erase_log");
  // On a full disk the entries stay until the next flush; they would be skipped by their lsn.
  const absl::Status erased = changes.empty() ? absl::OkStatus() : store_.Write(changes);
  if (erased.ok()) {
    NoteErased(flushed);
  }
  return absl::IsResourceExhausted(erased) ? absl::OkStatus() : erased;
}

void BucketStore::NoteErased(std::span<const FlushedBucket> flushed) {
  // Where only records are logged, they leave the log when they are written (WriteRecords).
  for (BucketId id = 0; IsLogged(mode_) && id < flushed.size(); ++id) {
    if (logged_until_[id] > 0) {
      erased_until_[id] = std::max(erased_until_[id], flushed[id].committed);
    }
  }
}

}  // namespace adamant::parameter_server
