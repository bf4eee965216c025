#pragma once

#include <cstdint>
#include <optional>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/replication/local_copy.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/replication/replica_host.h"

namespace adamant::parameter_server {

/// Part of a replica that follows the primary of its configuration, as a secondary or a learner
/// does: takes its entries, acknowledges them, commits what it hears to be committed, and promises
/// for a while to propose nothing. Threads: one at a time.
class Following {
 public:
  /// The last three must outlive this; record and copy are the replica's.
  Following(BucketId bucket,
            Clock::Duration grace,
            ReplicaHost& host,
            const Configuration& configuration,
            LocalCopy& local)
      : bucket_(bucket), grace_(grace), host_(host), configuration_(configuration), local_(local) {}

  /// Another configuration begins: nothing is acknowledged in it.
  void BeginConfiguration();

  /// The replica becomes a secondary: it gives the primary time to be heard.
  void Promise(Clock::TimePoint now);

  /// A copy begins of what was committed up to `base`.
  void BeginCopy(Lsn base);

  /// The primary is heard in this configuration, which began with what was committed up to `base`.
  /// False: who lacks what it takes for granted cannot be a replica, and must never take over.
  [[nodiscard]] bool HearsFrom(Lsn base);

  /// Takes what the primary sends. Requires HearsFrom.
  void OnBeacon(const Beacon& beacon, Clock::TimePoint now);
  void OnPrepare(const Prepare& prepare);

  /// Entries are stored.
  void OnPersisted();

  /// Hears that what was committed is on the disk.
  void OnFlushed();

  /// The way to the primary is open anew: the next beacon may be long in coming.
  void OnConnected();

  /// Commits what is known to be committed, once the content is there. Only what was acknowledged
  /// in this configuration is known to be the same.
  void CommitWhatIsKnown();

  [[nodiscard]] Clock::TimePoint promised_until() const { return promised_until_; }
  [[nodiscard]] Clock::TimePoint last_beacon() const { return last_beacon_; }

 private:
  void Accept(const EntryPtr& entry);
  void Acknowledge(bool gap);
  void AnswerBeacon();
  void LearnCommitted(Lsn committed);
  [[nodiscard]] Lsn Acked() const;
  void Send(decltype(PeerMessage::kind) kind);

  const BucketId bucket_;
  const Clock::Duration grace_;
  ReplicaHost& host_;
  const Configuration& configuration_;
  LocalCopy& local_;

  std::optional<Lsn> acked_;  // in this configuration; nullopt: the primary was not heard in it
  Lsn known_committed_ = 0;   // what the primary says
  Clock::TimePoint promised_until_{};
  Clock::TimePoint last_beacon_{};
  std::optional<Clock::TimePoint> beacon_sent_;  // of the last one answered in this configuration
  bool flush_wanted_ = false;
};

}  // namespace adamant::parameter_server
