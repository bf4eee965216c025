#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/protocol/buckets.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/replication/replica.h"

namespace adamant::parameter_server {

using protocol::BucketProgress;
using protocol::SnapshotBucket;
using protocol::StoredBucket;
using protocol::StoredBuckets;
using protocol::TakeSnapshot;

/// Report to the controller about a bucket: the server serves it under this configuration, or
/// cannot.
struct BucketReport {
  BucketId bucket = 0;
  ConfigurationVersion configuration_version = 0;
  bool lost = false;
  std::string detail = {};      ///< lost: what is missing or corrupt
  FailoverTimes failover = {};  ///< zero unless it took over
  std::uint64_t generation = 0;
  std::uint64_t updates = 0;  ///< applied to its shards since their creation
};

/// Returns what the controller is told of these buckets.
protocol::BucketsReady ReadyOf(const std::vector<BucketReport>& reports);

/// Interface for what a server asks of whoever drives it. Called on any thread and under the
/// server's lock: an implementation only queues, and does not call the server.
class Driver {
 public:
  virtual ~Driver() = default;

  /// Messages to one peer are sent in this order, bulk ones (PeerMessage::bulk) apart from the
  /// others; they may get lost.
  virtual void SendToPeer(const ServerId& to, PeerMessage message) = 0;

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
