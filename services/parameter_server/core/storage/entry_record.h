#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/base/ids.h"
#include "services/common/storage/kv_store.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/replication/messages.h"

// The log of a bucket as it is stored in the Wal modes: one value per entry, under the key
// log/<bucket>/<lsn>.
namespace adamant::parameter_server {

/// A stored entry, and the generation of the bucket that its lsn counts in.
struct StoredEntry {
  std::uint64_t generation = 0;
  EntryPtr entry;
};

/// Format version, generation, lsn, origin, updates with their values and operands, puts, XXH3.
storage::Change StoreEntry(BucketId bucket, std::uint64_t generation, const Entry& entry);

/// Checks and decodes a stored entry. The updates' shards, sizes and operands are those of
/// `layout`. Errors: FailedPrecondition for an unknown format version; DataLoss for anything else.
absl::StatusOr<StoredEntry> DecodeEntry(std::string_view stored, const ShardLayout& layout);

/// All stored entries of a bucket, in order.
/// Errors: as DecodeEntry, and those of KvStore::Scan.
absl::StatusOr<std::vector<StoredEntry>> LoadEntries(BucketId bucket,
                                                     const ShardLayout& layout,
                                                     const storage::KvStore& store);

/// Erases the stored entries behind `from` up to and with `to`.
storage::Change EraseEntries(BucketId bucket, Lsn from, Lsn to);

}  // namespace adamant::parameter_server
