#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "services/common/protocol/ids.h"

/// What parameter servers and the controller say to each other about buckets.
/// The protocol: docs/design/0002-replication.md.
namespace adamant::protocol {

/// The record of a bucket. Only the controller changes it, by compare and swap on the epoch.
struct Bucket {
  std::uint64_t epoch = 0;  ///< rises by one with every change of primary or members; 0: none yet
  std::uint64_t generation = 0;  ///< rises when all members were lost and one was restored
  Holder primary{};
  std::vector<Holder> members{};  ///< the primary among them
  bool created = false;           ///< its shards have been initialised once

  // Advice to the primary; changes no epoch.
  std::optional<Holder> learner{};  ///< to copy the bucket to and to add
  std::optional<Holder> leaver{};   ///< to drop
  std::optional<Holder> heir{};     ///< to hand over to

  std::uint64_t restored_snapshot = 0;  ///< what this generation came back from; 0: live state

  [[nodiscard]] bool Has(const Holder& holder) const {
    return std::ranges::find(members, holder) != members.end();
  }

  bool operator==(const Bucket&) const = default;
};

// --- From parameter servers

/// A change of a bucket's record, from the epoch named to the next.
struct Proposal {
  enum class Kind : std::uint8_t { kTakeOver, kDrop, kAdd };

  std::uint32_t bucket = 0;
  std::uint64_t epoch = 0;  ///< that it changes
  Kind kind = Kind::kTakeOver;
  Holder proposer{};
  Holder subject{};  ///< kDrop, kAdd; kDrop may name a learner that was to be added
  std::uint64_t last_lsn = 0;
  bool released = false;

  bool operator==(const Proposal&) const = default;
};

struct Proposals {
  std::vector<Proposal> proposals{};
};

/// What a disk holds of a bucket.
struct StoredBucket {
  std::uint32_t bucket = 0;
  std::uint64_t generation = 0;
  std::uint64_t updates = 0;  ///< in its shards, since their creation
  bool complete = false;
  std::string detail{};         ///< if not complete: what is missing or corrupt
  std::uint64_t log_epoch = 0;  ///< Wal modes: of the last logged entry
  std::uint64_t log_lsn = 0;
};

struct StoredBuckets {
  std::uint64_t previous_incarnation = 0;  ///< highest of this slot that opened the folder; 0: none
  std::vector<StoredBucket> buckets{};
};

/// How a bucket stands at its primary.
struct BucketProgress {
  std::uint32_t bucket = 0;
  std::uint64_t epoch = 0;
  std::uint64_t committed = 0;
  std::uint64_t lag = 0;      ///< entries that the slowest member has not acknowledged
  std::uint64_t updates = 0;  ///< applied to its shards since their creation
  bool serving = false;       ///< reconciled: it reads and writes
};

struct ParameterServerProgress {
  std::uint64_t updates_applied = 0;
  std::uint64_t dirty_bytes = 0;
  double oldest_unflushed_seconds = 0;
  std::uint64_t flushes = 0;
  std::string alarm{};
  std::vector<std::string> damages{};  ///< found on its disk since it started
  std::vector<BucketProgress> buckets{};
};

/// How long the phases of a take-over took.
struct FailoverTimes {
  double detect_seconds = 0;     ///< from the last beacon to the proposal
  double replace_seconds = 0;    ///< from the proposal to the new record
  double reconcile_seconds = 0;  ///< from the record to serving
};

/// A server serves the bucket as its primary under this epoch, or cannot.
struct BucketState {
  std::uint32_t bucket = 0;
  std::uint64_t epoch = 0;
  bool lost = false;
  std::string detail{};                     ///< lost: what is missing or corrupt
  std::optional<FailoverTimes> failover{};  ///< if it took over
  std::uint64_t updates = 0;                ///< applied to its shards since their creation
};

struct BucketsReady {
  std::vector<BucketState> buckets{};
};

/// A bucket in a snapshot.
struct SnapshotBucket {
  std::uint32_t bucket = 0;
  std::uint64_t epoch = 0;  ///< under which the server was its primary
  std::uint64_t generation = 0;
  std::uint64_t updates = 0;   ///< applied to its shards since their creation
  std::uint64_t checksum = 0;  ///< XXH3 over the XXH3s of its stored values, by key
};

struct SnapshotTaken {
  std::uint64_t snapshot = 0;
  bool ok = false;
  std::string error{};
  std::vector<SnapshotBucket> buckets{};
  bool disk_full = false;
};

// --- From the controller

/// What is to be copied.
struct TakeSnapshot {
  std::uint64_t snapshot = 0;
  std::uint64_t keep_from = 0;
  std::vector<std::uint64_t> keep{};
  std::vector<std::uint64_t> writers_from{};  ///< by worker slot: lower incarnations are refused
  std::vector<std::uint64_t> generations{};   ///< by bucket; empty: any
};

}  // namespace adamant::protocol
