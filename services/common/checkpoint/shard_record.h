#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/ids.h"
#include "services/common/checkpoint/sequence_table.h"

namespace adamant::checkpoint {

/// All that a shard is.
struct ShardContent {
  std::uint64_t generation = 0;  ///< of the bucket, which `lsn` counts in
  std::uint64_t lsn = 0;         ///< of the last entry that touched it
  std::uint64_t version = 0;     ///< updates applied since its creation
  SequenceTable sequences = {};
  std::vector<float> values;
  std::vector<float> state;  ///< of the optimiser
};

/// A decoded record; the spans point into the record.
struct ShardRecord {
  std::uint64_t generation = 0;
  std::uint64_t lsn = 0;
  std::uint64_t version = 0;
  SequenceTable sequences = {};
  std::span<const float> values;
  std::span<const float> state;
};

/// Identity and sizes that a stored shard must agree with.
struct ShardIdentity {
  std::uint64_t job_uid = 0;
  ShardId shard = 0;
  std::uint64_t values = 0;  ///< elements
  std::uint64_t state = 0;   ///< elements
};

// A stored shard: format version, job, shard, generation, lsn, version, sizes, sequence table,
// values, state, and at the end the XXH3 of all that. Little-endian; values and state lie at
// multiples of 4 bytes.

/// Encodes without the checksum, which SealShard appends: so that a shard need not stand still for
/// it.
std::string EncodeShard(const ShardIdentity& identity, const ShardContent& content);
void SealShard(std::string& record);

/// Checks and decodes a record, which must be aligned like a float and outlive the result.
/// Errors: FailedPrecondition for an unknown format version (naming both) or another job's record;
/// DataLoss if the checksum, a size or the order of the sequence table is wrong.
absl::StatusOr<ShardRecord> DecodeShard(const ShardIdentity& identity, std::string_view record);

/// The content of a record, as DecodeShard checks it.
absl::StatusOr<ShardContent> DecodeContent(const ShardIdentity& identity, std::string_view record);

/// Returns the key under which a live shard is stored.
std::string LiveShardKey(ShardId shard);

}  // namespace adamant::checkpoint
