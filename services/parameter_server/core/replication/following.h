#pragma once

#include <cstdint>
#include <optional>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/replication/local_copy.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/replication/replica_host.h"
#include "services/parameter_server/core/replication/replica_role.h"

namespace adamant::parameter_server {

/// Part of a replica that follows the primary of its configuration, as a secondary or a learner
/// does: takes its entries, acknowledges them, commits what it hears to be committed, and promises
/// for a while to propose nothing. Threads: one at a time.
class Following {
 public:
  using Role = ReplicaRole;

  struct Options {
    ServerId self;
    Clock::Duration grace{};  ///< of the promise
  };

  /// The last three must outlive this; configuration and copy are the replica's.
  Following(BucketId bucket,
            const Options& options,
            ReplicaHost& host,
            const Configuration& configuration,
            LocalCopy& local)
      : bucket_(bucket),
        options_(options),
        host_(host),
        configuration_(configuration),
        local_(local) {}

  /// Returns one up to kProposing; kNone: the replica follows nobody.
  [[nodiscard]] Role role() const { return role_; }

  /// Another configuration begins: nothing is acknowledged in it.
  void BeginConfiguration();

  /// The replica becomes a secondary: it gives the primary time to be heard.
  void BecomeSecondary(Clock::TimePoint now);

  /// The secondary proposes to take over, and promises nobody from now on.
  void StopPromising() { role_ = Role::kProposing; }

  /// Returns true if this copy is to be learnt: it is the primary's, and not begun already.
  [[nodiscard]] bool Learns(const ServerId& from, const CopyBegin& begin) const;

  /// The replica becomes a learner. What it had must be forgotten.
  void BeginCopy(const CopyBegin& begin);

  /// All parts of a copy are installed.
  void OnInstalled(std::uint64_t copy);

  /// The replica follows nobody any more.
  void Stop() { role_ = Role::kNone; }

  /// Takes what the primary sends. False: who lacks what it takes for granted cannot be a replica,
  /// and must never take over.
  [[nodiscard]] bool OnBeacon(const ServerId& from, const Beacon& beacon, Clock::TimePoint now);
  [[nodiscard]] bool OnPrepare(const ServerId& from, const Prepare& prepare);

  /// Entries are stored.
  void OnPersisted();

  /// Hears that what was committed is on the disk.
  void OnFlushed();

  /// The way to a server is open anew: if it is the primary, the next beacon may be long in coming.
  void OnConnected(const ServerId& server);

  [[nodiscard]] Clock::TimePoint promised_until() const { return promised_until_; }
  [[nodiscard]] Clock::TimePoint last_beacon() const { return last_beacon_; }

 private:
  [[nodiscard]] bool Follows(const ServerId& from) const;
  [[nodiscard]] bool HearsFrom(Lsn base);
  void Promise(Clock::TimePoint now);
  void Accept(const EntryPtr& entry);
  void Acknowledge(bool gap);
  void AnswerBeacon();
  void LearnCommitted(Lsn committed);
  void CommitWhatIsKnown();
  [[nodiscard]] Lsn Acked() const;
  void Send(decltype(PeerMessage::kind) kind);

  const BucketId bucket_;
  const Options options_;
  ReplicaHost& host_;
  const Configuration& configuration_;
  LocalCopy& local_;

  Role role_ = Role::kNone;
  std::optional<Lsn> acked_;  // in this configuration; nullopt: the primary was not heard in it
  Lsn known_committed_ = 0;   // what the primary says
  Clock::TimePoint promised_until_{};
  Clock::TimePoint last_beacon_{};
  std::optional<Clock::TimePoint> beacon_sent_;  // of the last one answered in this configuration
  bool flush_wanted_ = false;
};

}  // namespace adamant::parameter_server
