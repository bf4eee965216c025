#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/replication/replica.h"

namespace adamant::parameter_server {

/// What a server tells the controller of a bucket: it serves it under this epoch, or cannot.
struct BucketReport {
  BucketId bucket = 0;
  Epoch epoch = 0;
  bool lost = false;
  std::string detail = {};      ///< lost: what is missing or corrupt
  FailoverTimes failover = {};  ///< zero unless it took over
  std::uint64_t generation = 0;
  std::uint64_t updates = 0;  ///< applied to its shards since their creation
};

/// What a disk holds of a bucket.
struct StoredBucket {
  BucketId bucket = 0;
  std::uint64_t generation = 0;
  std::uint64_t updates = 0;  ///< in its shards, since their creation
  bool complete = false;
  std::string detail = {};  ///< if not complete: what is missing or corrupt
  Epoch log_epoch = 0;      ///< Wal modes: of the last logged entry
  Lsn log_lsn = 0;
};

struct StoredBuckets {
  std::uint64_t previous_incarnation = 0;  ///< highest of this slot that opened the folder; 0: none
  std::vector<StoredBucket> buckets = {};
};

/// How a bucket that this server is primary of stands.
struct BucketProgress {
  BucketId bucket = 0;
  Epoch epoch = 0;
  Lsn committed = 0;
  Lsn lag = 0;                ///< entries that the slowest member has not acknowledged
  std::uint64_t updates = 0;  ///< applied to its shards since their creation
  bool serving = false;       ///< reconciled: it reads and writes
};

/// What is to be copied; see TakeSnapshot in proto/adamant/v1/control.proto.
struct SnapshotRequest {
  std::uint64_t snapshot = 0;
  std::uint64_t keep_from = 0;
  std::vector<std::uint64_t> keep = {};
  std::vector<std::uint64_t> generations = {};  ///< by bucket; empty: any
};

/// A bucket in a snapshot.
struct SnapshotBucket {
  BucketId bucket = 0;
  Epoch epoch = 0;  ///< under which this server was its primary
  std::uint64_t generation = 0;
  std::uint64_t updates = 0;   ///< applied to its shards since their creation
  std::uint64_t checksum = 0;  ///< see proto/adamant/v1/control.proto
};

/// What a server asks of whoever drives it. Called on any thread and under the server's lock: an
/// implementation only queues, and does not call the server.
class Driver {
 public:
  virtual ~Driver() = default;

  /// Messages to one peer are sent in this order, bulk ones (PeerMessage::bulk) apart from the
  /// others; they may get lost.
  virtual void SendToPeer(const Holder& to, PeerMessage message) = 0;

  /// Sent to the controller; may get lost, and comes again then.
  virtual void Propose(const Proposal& proposal) = 0;

  /// Sent to the controller, and again by Reports after a reconnect.
  virtual void Report(const BucketReport& report) = 0;

  /// ApplyCommitted has something to do.
  virtual void WantApply() = 0;

  /// DoStorage has something to do, or StorageDueAt has become earlier.
  virtual void WantStorage() = 0;
};

}  // namespace adamant::parameter_server
