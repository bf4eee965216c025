#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/protocol/ids.h"

/// Messages between parameter servers and the controller about buckets.
/// The protocol: docs/design/0002-replication.md.
namespace adamant::protocol {

/// The servers that have a bucket. Only the controller changes it, by compare and swap on
/// the version. On the wire and in the CRD: `epoch`, `members`, `leaver`, `heir`.
struct Configuration {
  /// Rises by one with every change but of hints; 0: none yet.
  ConfigurationVersion version = 0;
  std::uint64_t generation = 0;  ///< rises when all replicas were lost and one was restored
  ServerId primary{};
  std::vector<ServerId> replicas{};  ///< the primary among them
  bool created = false;              ///< its shards have been initialised once

  // Hints to the primary; changing them changes no version.
  std::optional<ServerId> learner{};    ///< to copy the bucket to and to add
  std::optional<ServerId> departing{};  ///< to drop
  std::optional<ServerId> successor{};  ///< to hand over to

  std::uint64_t restored_snapshot = 0;  ///< what this generation came back from; 0: live state

  [[nodiscard]] bool Has(const ServerId& server) const {
    return std::ranges::find(replicas, server) != replicas.end();
  }

  bool operator==(const Configuration&) const = default;
};

// --- From parameter servers

/// A change of a bucket's configuration, from the version named to the next.
struct Proposal {
  enum class Kind : std::uint8_t { kPromote, kDrop, kAdd };

  BucketId bucket = 0;
  ConfigurationVersion configuration_version = 0;  ///< that it changes
  Kind kind = Kind::kPromote;
  ServerId proposer{};
  ServerId subject{};  ///< kDrop, kAdd; kDrop may name a learner that was to be added
  std::uint64_t last_lsn = 0;
  bool released = false;

  bool operator==(const Proposal&) const = default;
};

struct Proposals {
  std::vector<Proposal> proposals{};
};

/// State of a bucket as a disk holds it.
struct StoredBucket {
  BucketId bucket = 0;
  std::uint64_t generation = 0;
  std::uint64_t updates = 0;  ///< in its shards, since their creation
  bool complete = false;
  std::string detail{};                  ///< if not complete: what is missing or corrupt
  ConfigurationVersion log_version = 0;  ///< Wal modes: of the last logged entry
  std::uint64_t log_lsn = 0;
};

struct StoredBuckets {
  Incarnation previous_incarnation = 0;  ///< highest of this slot that opened the folder; 0: none
  std::vector<StoredBucket> buckets{};
};

/// State of a bucket at its primary.
struct BucketProgress {
  BucketId bucket = 0;
  ConfigurationVersion configuration_version = 0;
  std::uint64_t committed = 0;
  std::uint64_t lag = 0;      ///< entries that the slowest replica has not acknowledged
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

/// Durations of the phases of a promotion.
struct FailoverTimes {
  double detect_seconds = 0;     ///< from the last beacon to the proposal
  double replace_seconds = 0;    ///< from the proposal to the new configuration
  double reconcile_seconds = 0;  ///< from the configuration to serving
};

/// A server serves the bucket as its primary under this configuration, or cannot.
struct BucketState {
  BucketId bucket = 0;
  ConfigurationVersion configuration_version = 0;
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
  BucketId bucket = 0;
  ConfigurationVersion configuration_version = 0;  ///< under which the server was its primary
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

/// Command that says what is to be copied.
struct TakeSnapshot {
  std::uint64_t snapshot = 0;
  std::uint64_t keep_from = 0;
  std::vector<std::uint64_t> keep{};
  std::vector<Incarnation> writers_from{};   ///< by worker slot: lower incarnations are refused
  std::vector<std::uint64_t> generations{};  ///< by bucket; empty: any
};

}  // namespace adamant::protocol
