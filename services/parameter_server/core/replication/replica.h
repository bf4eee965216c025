#pragma once

#include <cstdint>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/protocol/buckets.h"
#include "services/parameter_server/core/replication/entry_log.h"
#include "services/parameter_server/core/replication/following.h"
#include "services/parameter_server/core/replication/local_copy.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/replication/primary.h"
#include "services/parameter_server/core/replication/proposer.h"
#include "services/parameter_server/core/replication/replica_host.h"
#include "services/parameter_server/core/replication/replica_role.h"

namespace adamant::parameter_server {

using protocol::FailoverTimes;

/// State of a replica that is worth reporting.
struct ReplicaStatus {
  ConfigurationVersion configuration_version = 0;
  Lsn committed = 0;
  Lsn prepared = 0;
  Lsn slowest = 0;         ///< primary: acknowledged by every replica
  FailoverTimes failover;  ///< of the promotion that made it the primary
};

/// One server's part in the replication of one bucket: PacificA's state machine. It adopts
/// configurations and takes over; what it does in between is Primary's or Following's. It sees
/// entries as opaque; what they mean, and the bucket's content, is the host's.
///
/// Use: after any call, call Tick again at NextTick.
/// Threads: one at a time; never waits.
/// Source: Lin, Yang, Zhang and Zhang, PacificA (MSR-TR-2008-25); docs/design/0002-replication.md.
class Replica {
 public:
  using Role = ReplicaRole;
  using Logging = EntryLog::Logging;

  struct Options {
    ServerId self;
    ReplicationTimes times;
    std::uint32_t min_in_sync = 1;
    /// Prepared and not committed; likewise what a learner keeps until it has its copy.
    std::uint64_t max_log_bytes = std::uint64_t{256} << 20;
    Logging logging = Logging::kNothing;
  };

  /// `host` must outlive this.
  Replica(BucketId bucket, const Options& options, ReplicaHost& host);

  // --- What happens

  /// A configuration of this bucket, from the controller.
  void OnConfiguration(const Configuration& configuration, Clock::TimePoint now);

  /// These servers are proved to be dead.
  void OnDead(const std::vector<ServerId>& dead, Clock::TimePoint now);

  void OnMessage(const ServerId& from, const PeerMessage& message, Clock::TimePoint now);

  /// A way to this peer is open anew: what was sent before may be lost, answers too.
  void OnConnected(const ServerId& peer, Clock::TimePoint now);

  /// Notes that what was to be stored under this ticket is. Does nothing for an entry that has
  /// been overwritten or forgotten since, though the same one may have come again.
  void Persisted(std::uint64_t ticket, Clock::TimePoint now);

  /// All that was committed up to `lsn` is on this server's disk, without its log.
  void Flushed(Lsn lsn);

  /// Primary: every replica is to flush soon.
  void RequestFlush(Clock::TimePoint now);

  /// The content asked for by Load is there.
  void Loaded(Clock::TimePoint now);

  /// All parts of a copy have been acknowledged.
  void Copied(std::uint64_t copy, Clock::TimePoint now);

  /// Learner: all parts of the copy are installed.
  void Installed(std::uint64_t copy);

  void Tick(Clock::TimePoint now);
  [[nodiscard]] Clock::TimePoint NextTick() const;

  // --- What the primary is asked for

  /// Returns true if an entry may be appended now.
  [[nodiscard]] bool CanAppend() const;

  /// Appends an entry, whose lsn and origin are set here. CanAppend() must hold. It may be
  /// committed on return.
  Lsn Append(Entry entry, Clock::TimePoint now);

  /// Returns true if the bucket may be read now: what is committed is then the truth.
  [[nodiscard]] bool CanRead(Clock::TimePoint now) const;

  // --- How it stands

  [[nodiscard]] Role role() const { return IsPrimary() ? primary_.role() : following_.role(); }
  [[nodiscard]] bool IsPrimary() const { return primary_.IsPrimary(); }
  [[nodiscard]] const Configuration& configuration() const { return configuration_; }

  /// Learner: the copy under way. 0: none.
  [[nodiscard]] std::uint64_t copy() const { return local_.copy(); }
  [[nodiscard]] const EntryLog& log() const { return local_.log(); }

  /// Returns what this replica knows to be on the disks of all replicas, whoever they are until the
  /// generation ends. It learns of others as the primary.
  [[nodiscard]] Lsn durable() const { return primary_.durable(); }
  [[nodiscard]] ReplicaStatus status() const;

 private:
  void Adopt(const Configuration& configuration, Clock::TimePoint now);
  void Leave();
  void Follow(const ServerId& from, const PeerMessage& message, Clock::TimePoint now);
  void Inherit(const ServerId& from, Clock::TimePoint now);
  void ProposePromotion(bool released, Clock::TimePoint now);

  const BucketId bucket_;
  const Options options_;
  ReplicaHost& host_;

  Configuration configuration_;
  LocalCopy local_;
  Proposer proposals_;
  Primary primary_;
  Following following_;        // the secondary and the learner; has no role while primary_ has one
  double detect_seconds_ = 0;  // this and the next: FailoverTimes
  double replace_seconds_ = 0;
};

}  // namespace adamant::parameter_server
