#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/storage/kv_store.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/driver.h"
#include "services/parameter_server/core/records.h"
#include "services/parameter_server/core/shard_record.h"

// A bucket on disk: its shards, its records, and a mark that says of which generation it is and
// that all of it is there.
namespace adamant::parameter_server {

/// "bucket/<id>" = format version and generation.
storage::Change MarkBucket(BucketId bucket, std::uint64_t generation);
storage::Change UnmarkBucket(BucketId bucket);

/// Generation of a marked bucket; NotFound without a mark; FailedPrecondition for an unknown format
/// version.
absl::StatusOr<std::uint64_t> LoadMark(BucketId bucket, const storage::KvStore& store);

/// Wal modes, "logged/<id>": up to where the log was when its entries were erased.
storage::Change StoreLogEnd(BucketId bucket, Epoch epoch, Lsn lsn);
storage::Change EraseLogEnd(BucketId bucket);

/// Every marked bucket, by id.
absl::StatusOr<std::vector<BucketId>> MarkedBuckets(const storage::KvStore& store);

/// One stored shard, checked.
/// Errors: NotFound when it is missing; those of DecodeContent and KvStore::Get.
absl::StatusOr<ShardContent> LoadShard(const ShardIdentity& identity,
                                       const storage::KvStore& store);

/// Reads and checks all of a bucket. What is missing or corrupt is told in the result.
/// Errors: those of the store other than DataLoss.
absl::StatusOr<StoredBucket> InspectBucket(std::uint64_t job_uid,
                                           BucketId bucket,
                                           const std::vector<ShardIdentity>& shards,
                                           const ShardLayout& layout,
                                           const storage::KvStore& store);

/// The incarnation that opened the store last; 0 if none has.
absl::StatusOr<std::uint64_t> LoadIncarnation(const storage::KvStore& store);
storage::Change StoreIncarnation(std::uint64_t incarnation);

}  // namespace adamant::parameter_server
