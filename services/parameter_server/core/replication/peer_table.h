#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "services/common/base/clock.h"
#include "services/parameter_server/core/replication/messages.h"

namespace adamant::parameter_server {

/// Another server of a bucket, as its primary sees it in this configuration.
struct Peer {
  enum class Kind : std::uint8_t {
    kReplica,  ///< counts for commits
    kJoint,    ///< a learner that has its copy: it counts for the lease, commits and durability
    kCopying,  ///< a learner that is being copied to
  };

  ServerId server;
  Kind kind = Kind::kReplica;
  bool in_step = false;  ///< it has told what it has since the way to it was opened
  Lsn acked = 0;
  Lsn sent = 0;
  Lsn flushed = 0;                             ///< on its disk
  std::optional<Clock::TimePoint> answered{};  ///< sending time of the last beacon it answered
  Clock::TimePoint heard{};                    ///< the same, or when it became a peer
  Clock::TimePoint progress_at{};  ///< when it began to owe acknowledgements, or gave one
  Clock::TimePoint resend_at{};    ///< if it still owes some then
  Clock::TimePoint rewind_at{};    ///< for a gap, not before
  bool stale = false;              ///< lacks entries that are no longer in the log
  Lsn joint_from = 0;              ///< kJoint: committed when it became so
  bool proposed = false;           ///< kJoint: it may be a replica by now, if nobody told us yet
  std::uint64_t kept_bytes = 0;    ///< kCopying: of entries, which it cannot apply yet
  std::optional<Clock::TimePoint> full_since{};  ///< kCopying: kept_bytes are all it may keep
};

/// The peers of a bucket's primary: its replicas, and one learner at most, which comes last.
/// Threads: one at a time.
class PeerTable {
 public:
  explicit PeerTable(const ReplicationTimes& times) : times_(times) {}

  /// These servers, of any bucket, are proved to be dead.
  void SetDead(std::vector<ServerId> dead) { dead_ = std::move(dead); }
  [[nodiscard]] bool IsDead(const ServerId& server) const;

  void Clear() { peers_.clear(); }

  /// Adds a peer that has what is committed.
  Peer& Add(const ServerId& server, Peer::Kind kind, Lsn committed, Clock::TimePoint now);

  /// Forgets the learner. False: there is none.
  bool RemoveLearner();

  [[nodiscard]] std::vector<Peer>& all() { return peers_; }
  [[nodiscard]] const std::vector<Peer>& all() const { return peers_; }
  [[nodiscard]] Peer* Find(const ServerId& server);
  [[nodiscard]] Peer* FindLearner();

  /// Returns up to where all have acknowledged who count, and this replica has stored.
  [[nodiscard]] Lsn AckedByAll(Lsn persisted) const;

  /// Returns what is on the disks of all who count, and on this one's. A learner counts as soon as
  /// it may be a replica. Until then what is durable may pass it by: it is added when it has caught
  /// up.
  [[nodiscard]] Lsn OnAllDisks(Lsn on_disk) const;

  /// Returns true if all who count have answered a beacon of this configuration that is younger
  /// than the lease.
  [[nodiscard]] bool LeaseHolds(Clock::TimePoint now) const;

  /// Returns true if a learner keeps all that it may, so that nothing may be appended.
  [[nodiscard]] bool AnyIsFull() const;

  /// Returns true if `peer` is dead, silent, stuck, or lacks what cannot be sent any more.
  [[nodiscard]] bool IsLost(const Peer& peer, Lsn prepared, Clock::TimePoint now) const;

  /// Returns a replica to do without; nullptr: none. The controller may not let go who is not
  /// proved to be dead. A learner that was proposed cannot simply be given up, since it may be a
  /// replica by now: to drop it settles that.
  [[nodiscard]] const Peer* FindLost(Lsn prepared, Clock::TimePoint now) const;

  /// Returns when to look at them though nothing has happened. `dropping`: one is being dropped,
  /// and silence changes nothing.
  [[nodiscard]] Clock::TimePoint NextCheck(bool dropping) const;

 private:
  const ReplicationTimes times_;
  std::vector<Peer> peers_;
  std::vector<ServerId> dead_;
};

}  // namespace adamant::parameter_server
