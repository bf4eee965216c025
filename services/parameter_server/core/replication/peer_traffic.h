#pragma once

#include <cstdint>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/replication/entry_log.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/replication/peer_table.h"
#include "services/parameter_server/core/replication/replica_host.h"

namespace adamant::parameter_server {

/// Traffic of a bucket's primary with its peers in a configuration: entries and beacons go out,
/// acknowledgements come back, and one learner at a time is copied to. It commits and proposes
/// nothing. Threads: one at a time.
class PeerTraffic {
 public:
  struct Options {
    ReplicationTimes times;
    std::uint64_t max_log_bytes = 0;  ///< that a learner keeps until it has its copy
  };

  /// The last three must outlive this; configuration and log are the replica's.
  PeerTraffic(BucketId bucket,
              const Options& options,
              ReplicaHost& host,
              const Configuration& configuration,
              const EntryLog& log)
      : bucket_(bucket),
        times_(options.times),
        max_log_bytes_(options.max_log_bytes),
        host_(host),
        configuration_(configuration),
        log_(log),
        peers_(options.times) {}

  [[nodiscard]] PeerTable& peers() { return peers_; }
  [[nodiscard]] const PeerTable& peers() const { return peers_; }

  /// Another configuration begins: there are no peers until BeginConfiguration.
  void Clear();

  /// This replica is the primary of the configuration: the other replicas are its peers.
  void BeginConfiguration(const ServerId& self, Clock::TimePoint now);

  /// An entry is in the log: sends it.
  void OnAppended(const Entry& entry, Clock::TimePoint now);

  /// Sends again what was not acknowledged in time.
  void SendAgain(Clock::TimePoint now);

  /// Takes what a peer says. False: it counts for nothing.
  bool OnAcknowledged(const ServerId& from, const PrepareAck& ack, Clock::TimePoint now);
  bool OnAnswered(const ServerId& from, const BeaconAnswer& answer, Clock::TimePoint now);
  void OnCopyAcknowledged(const ServerId& from, const CopyAck& ack, Clock::TimePoint now);

  /// The way to a peer is open anew. True: its copy was given up.
  bool OnConnected(const ServerId& server, Clock::TimePoint now);

  void SendBeacons(Clock::TimePoint now);
  void PostponeBeacons(Clock::TimePoint now);
  [[nodiscard]] Clock::TimePoint next_beacon() const { return next_beacon_; }

  /// Every replica is to flush soon.
  void RequestFlush(Clock::TimePoint now);

  /// Returns what was found to be on the disks of all replicas.
  [[nodiscard]] Lsn durable() const { return durable_; }
  void RaiseDurable();
  void ForgetDurable() { durable_ = 0; }

  // --- The learner

  void BeginCopy(const ServerId& learner, Clock::TimePoint now);

  /// Returns when the next copy may begin.
  [[nodiscard]] Clock::TimePoint next_copy() const { return next_copy_; }

  void GiveUpCopy();

  /// Gives a copy up whose learner is lost, or too slow for the traffic.
  void CheckCopy(Clock::TimePoint now);

  /// All parts of a copy have been acknowledged: the learner counts from now on. False: it is not
  /// the copy under way.
  bool OnCopied(std::uint64_t copy, Clock::TimePoint now);

  /// Returns when to look at the peers though nothing has happened. `dropping`: one is being
  /// dropped.
  [[nodiscard]] Clock::TimePoint NextCheck(bool dropping) const;

 private:
  [[nodiscard]] bool Counts(const Peer& peer, std::uint64_t copy) const;
  void Send(const ServerId& to, decltype(PeerMessage::kind) kind);
  void SendEntries(Peer& peer, Clock::TimePoint now);
  void SendBeacon(const Peer& peer, Clock::TimePoint now);
  void Count(Peer& peer, Lsn acked, Lsn flushed, Clock::TimePoint now);
  void KeptByLearner(Peer& peer, std::uint64_t bytes, Clock::TimePoint now) const;

  const BucketId bucket_;
  const ReplicationTimes times_;
  const std::uint64_t max_log_bytes_;
  ReplicaHost& host_;
  const Configuration& configuration_;
  const EntryLog& log_;

  PeerTable peers_;
  Lsn base_ = 0;  // committed when the configuration began
  Lsn durable_ = 0;
  Clock::TimePoint next_beacon_{};
  bool flush_wanted_ = false;  // to be told
  std::uint64_t last_copy_ = 0;
  Clock::TimePoint next_copy_{};  // not before
};

}  // namespace adamant::parameter_server
