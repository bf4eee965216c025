#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/base/ids.h"
#include "services/common/protocol/buckets.h"
#include "services/common/storage/kv_store.h"

// Keys and marks of snapshots in a store. A bucket's copy has the keys of the live bucket, behind a
// prefix; a mark says that it is complete, and how the bucket stood.
namespace adamant::checkpoint {

/// Beginning of the keys of all marks.
inline constexpr std::string_view kMarkPrefix = "snapshots/";

std::string MarkKey(std::uint64_t snapshot, BucketId bucket);

/// Returns the snapshot and the bucket of a mark; nullopt if the key is none of a mark.
std::optional<std::pair<std::uint64_t, BucketId>> ParseMarkKey(std::string_view key);

/// Returns what all keys of a bucket's copy begin with; the rest are the keys of the live bucket.
std::string CopyPrefix(std::uint64_t snapshot, BucketId bucket);

/// Returns what all keys of a snapshot begin with, in their order: of its copies, and of its marks.
std::array<std::string, 2> SnapshotPrefixes(std::uint64_t snapshot);

std::string EncodeMark(const protocol::SnapshotBucket& about);

/// Errors: FailedPrecondition for an unknown format version.
absl::StatusOr<protocol::SnapshotBucket> DecodeMark(BucketId bucket, const std::string& text);

/// Of the values of a copy, by key of the live bucket.
using ValueChecksums = std::map<std::string, std::uint64_t>;

/// Returns SnapshotBucket::checksum.
std::uint64_t ChecksumOf(const ValueChecksums& checksums);

/// Returns the end of the range of all keys that begin with `prefix`.
std::string EndOf(std::string_view prefix);

storage::Change EraseAll(std::string prefix);

}  // namespace adamant::checkpoint
