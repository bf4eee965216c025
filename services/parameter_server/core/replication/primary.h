#pragma once

#include <cstdint>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/replication/local_copy.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/replication/peer_table.h"
#include "services/parameter_server/core/replication/peer_traffic.h"
#include "services/parameter_server/core/replication/placement_hints.h"
#include "services/parameter_server/core/replication/primary_transfer.h"
#include "services/parameter_server/core/replication/proposer.h"
#include "services/parameter_server/core/replication/reconfiguration.h"
#include "services/parameter_server/core/replication/replica_host.h"
#include "services/parameter_server/core/replication/replica_role.h"

namespace adamant::parameter_server {

/// Part of a replica that is its bucket's primary: it loads the bucket or takes it over, commits
/// what it took over, serves under its lease, and hands over. Does nothing while another server is.
/// Threads: one at a time.
class Primary {
 public:
  using Role = ReplicaRole;

  struct Options {
    ServerId self;
    ReplicationTimes times;
    std::uint32_t min_in_sync = 1;
    std::uint64_t max_log_bytes = 0;  ///< prepared and not committed; see PeerTraffic too
  };

  /// The last four must outlive this; all but the host are the replica's.
  Primary(BucketId bucket,
          const Options& options,
          ReplicaHost& host,
          const Configuration& configuration,
          LocalCopy& local,
          Proposer& proposals);

  /// Returns one from kLoading on; kNone: another server is the primary.
  [[nodiscard]] Role role() const { return role_; }
  [[nodiscard]] bool IsPrimary() const { return role_ != Role::kNone; }
  [[nodiscard]] const PeerTable& peers() const { return traffic_.peers(); }

  /// See Replica::durable. Kept when the replica becomes a secondary.
  [[nodiscard]] Lsn durable() const { return traffic_.durable(); }
  void RaiseDurable() { traffic_.RaiseDurable(); }
  void ForgetDurable() { traffic_.ForgetDurable(); }

  /// Returns how long it took to commit what was taken over, when that was last done.
  [[nodiscard]] double reconcile_seconds() const { return reconcile_seconds_; }

  // --- Configurations

  void GiveUpCopy() { traffic_.GiveUpCopy(); }

  /// The configuration is over: who was primary stays it if BeginConfiguration follows.
  void EndConfiguration();

  /// This server is the primary of the configuration.
  void BeginConfiguration(Clock::TimePoint now);

  /// Another server is.
  void StepDown() { role_ = Role::kNone; }

  /// Does what the hints of the configuration say, as far as it can be done now.
  void FollowHint(Clock::TimePoint now);

  // --- What happens

  void OnLoaded(Clock::TimePoint now);
  void OnDead(const std::vector<ServerId>& dead, Clock::TimePoint now);
  void OnMessage(const ServerId& from, const PeerMessage& message, Clock::TimePoint now);
  void OnConnected(const ServerId& server, Clock::TimePoint now);
  void OnCopied(std::uint64_t copy, Clock::TimePoint now);
  void RequestFlush(Clock::TimePoint now);
  void Tick(Clock::TimePoint now);

  /// Returns when Tick has something to do though nothing happens.
  [[nodiscard]] Clock::TimePoint NextTick() const;

  // --- Entries

  [[nodiscard]] bool CanAppend() const;
  Lsn Append(Entry entry, Clock::TimePoint now);
  [[nodiscard]] bool CanRead(Clock::TimePoint now) const;

  /// Commits what all have, and does what has waited for that.
  void TryCommit(Clock::TimePoint now);

 private:
  [[nodiscard]] bool MayFollowHints() const;
  void ServeIfReconciled(Clock::TimePoint now);
  void CheckPeers(Clock::TimePoint now);

  const BucketId bucket_;
  const Options options_;
  ReplicaHost& host_;
  const Configuration& configuration_;
  LocalCopy& local_;
  Proposer& proposals_;

  Role role_ = Role::kNone;
  Lsn promotion_ = 0;  // prepared when the configuration began, to be committed before serving
  Clock::TimePoint began_at_{};
  double reconcile_seconds_ = 0;
  PeerTraffic traffic_;
  Reconfiguration reconfiguration_;
  PlacementHints hints_;
  PrimaryTransfer transfer_;  // kDraining
};

}  // namespace adamant::parameter_server
