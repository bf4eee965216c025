#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/ids.h"
#include "services/common/storage/kv_store.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/buckets/records.h"
#include "services/parameter_server/core/driver.h"
#include "services/parameter_server/core/shards/shard_content.h"
#include "services/parameter_server/core/storage/entry_record.h"

// A bucket on disk: its shards, its records, and a mark that says of which generation it is and
// that all of it is there.
namespace adamant::parameter_server {

/// "bucket/<id>" = format version and generation.
storage::Change MarkBucket(BucketId bucket, std::uint64_t generation);
storage::Change UnmarkBucket(BucketId bucket);

/// Generation of a marked bucket; NotFound without a mark; FailedPrecondition for an unknown format
/// version.
absl::StatusOr<std::uint64_t> LoadMark(BucketId bucket, const storage::KvStore& store);

/// Wal modes, "logged/<id>": up to where the log was when its entries were erased, and the origin
/// of that entry.
storage::Change StoreLogEnd(BucketId bucket, ConfigurationVersion origin, Lsn lsn);
storage::Change EraseLogEnd(BucketId bucket);

/// Every marked bucket, by id.
absl::StatusOr<std::vector<BucketId>> MarkedBuckets(const storage::KvStore& store);

/// All that is stored of a bucket.
struct StoredContent {
  std::uint64_t generation = 0;
  std::vector<ShardContent> shards = {};
  RecordMap records = {};
  std::vector<StoredEntry> entries = {};  ///< logged and not flushed yet, in order
  ConfigurationVersion log_version = 0;   ///< of the last entry that was ever logged; 0: none
  Lsn log_lsn = 0;
};

/// Reads and checks all of a bucket.
/// Errors: NotFound without a mark or a shard; FailedPrecondition and DataLoss as the decoders of
/// the parts and KvStore::Get; those of the store.
absl::StatusOr<StoredContent> LoadContent(std::uint64_t job_uid,
                                          BucketId bucket,
                                          const std::vector<ShardIdentity>& shards,
                                          const ShardLayout& layout,
                                          const storage::KvStore& store);

/// Returns true if the problem lies in what is stored, not in reading it.
bool IsContentProblem(const absl::Status& status);

/// Returns what is told of a bucket that was loaded, or that has a problem in what is stored.
StoredBucket Describe(BucketId bucket, const absl::StatusOr<StoredContent>& content);

/// The highest incarnation of this slot of the job that has opened the store; 0 if none has. One
/// that was given up may open it after a later one. What is stored is "incarnation job slot"; what
/// older states left out is taken to be as the caller says.
absl::StatusOr<std::uint64_t> LoadIncarnation(std::uint64_t job_uid,
                                              std::uint32_t slot,
                                              const storage::KvStore& store);

/// Returns whether a server of another job has opened the store last.
absl::StatusOr<bool> IsOfAnotherJob(std::uint64_t job_uid, const storage::KvStore& store);

storage::Change StoreIncarnation(std::uint64_t job_uid, const ServerId& opener);

}  // namespace adamant::parameter_server
