#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "services/common/base/clock.h"
#include "services/parameter_server/core/replication/messages.h"

namespace adamant::parameter_server {

/// What one replica of a bucket asks of the server that it lives in. Called from within the
/// replica's members, which must not be called back.
class ReplicaHost {
 public:
  virtual ~ReplicaHost() = default;

  /// Hands a message to the network; it may get lost.
  virtual void Send(const Holder& to, PeerMessage message) = 0;

  /// Hands a proposal to the controller; it may get lost.
  virtual void Propose(const Proposal& proposal) = 0;

  /// Store the entry, which counts only then (Options::logging), after erasing all that is stored
  /// from its lsn on; then call Persisted with the ticket. Tickets are stored in their order.
  virtual void Persist(BucketId bucket, const EntryPtr& entry, std::uint64_t ticket) = 0;

  /// The entry is committed: apply it. In the order of the log.
  virtual void Commit(BucketId bucket, const EntryPtr& entry) = 0;

  /// Primary: create the bucket (it has never existed) or load what is stored; then call Loaded.
  virtual void Load(BucketId bucket, bool create) = 0;

  /// Primary: the bucket is served under a new epoch.
  virtual void Serving(BucketId bucket) = 0;

  /// This server is no primary of the bucket any more: what waits for an acknowledgement here is to
  /// be asked again elsewhere.
  virtual void Demoted(BucketId bucket) = 0;

  /// Primary: send all that the bucket holds, including what is committed up to `base`, to a
  /// learner, naming `copy`; then call Copied. A copy begun before is given up. CopyBegin must be
  /// on its way before this returns: entries follow at once, and count for nothing before it.
  virtual void StartCopy(BucketId bucket, const Holder& learner, std::uint64_t copy, Lsn base) = 0;
  virtual void StopCopy(BucketId bucket) = 0;

  /// Learner: this copy begins, parts of it follow, and what is stored of the bucket counts for
  /// nothing; call Installed when all of it is there.
  virtual void Learn(BucketId bucket, const CopyBegin& begin) = 0;

  /// This server holds the bucket no longer, or is to learn it anew: forget it, and a Load under
  /// way.
  virtual void Clear(BucketId bucket) = 0;
};

/// What of a replica is worth reporting.
struct ReplicaStatus {
  Epoch epoch = 0;
  Lsn committed = 0;
  Lsn prepared = 0;
  Lsn slowest = 0;  ///< primary: acknowledged by every member
};

/// How long a take-over took, by phase (docs/design/0002-replication.md).
struct FailoverTimes {
  Clock::Duration detect{0};     ///< from the last beacon to the proposal
  Clock::Duration replace{0};    ///< from the proposal to the new record
  Clock::Duration reconcile{0};  ///< from the record to serving
};

/// One server's part in the replication of one bucket: PacificA's state machine. It sees entries as
/// opaque; what they mean, and the bucket's content, is the host's.
///
/// Use: after any call, call Tick again at NextTick.
/// Threads: one at a time; never waits.
/// Source: Lin, Yang, Zhang and Zhang, PacificA (MSR-TR-2008-25); docs/design/0002-replication.md.
class Replica {
 public:
  enum class Role : std::uint8_t {
    kNone,         ///< not a holder
    kLearner,      ///< being copied to
    kSecondary,    ///
    kProposing,    ///< secondary that has proposed to take over, and promises nobody
    kLoading,      ///< primary, whose content is not there yet
    kReconciling,  ///< primary, committing under its epoch what it took over
    kServing,      ///< primary
    kDraining,     ///< primary that hands over
  };

  /// Which entries count only when they are stored (Persist).
  enum class Logging : std::uint8_t { kNothing, kRecords, kAll };

  struct Options {
    Holder self;
    ReplicationTimes times;
    std::uint32_t min_in_sync = 1;
    /// Prepared and not committed; likewise what a learner keeps until it has its copy.
    std::uint64_t max_log_bytes = std::uint64_t{256} << 20;
    Logging logging = Logging::kNothing;
  };

  /// `host` must outlive this.
  Replica(BucketId bucket, const Options& options, ReplicaHost& host);

  // --- What happens

  /// A record of this bucket, from the controller.
  void OnConfiguration(const Configuration& configuration, Clock::TimePoint now);

  /// These holders are proved to be dead.
  void OnDead(const std::vector<Holder>& dead, Clock::TimePoint now);

  void OnMessage(const Holder& from, const PeerMessage& message, Clock::TimePoint now);

  /// A way to this peer is open anew: what was sent before may be lost, answers too.
  void OnConnected(const Holder& peer, Clock::TimePoint now);

  /// What was to be stored under this ticket is. Void for an entry that has been overwritten or
  /// forgotten since, though the same one may have come again.
  void Persisted(std::uint64_t ticket, Clock::TimePoint now);

  /// All that was committed up to `lsn` is on this server's disk, without its log.
  void Flushed(Lsn lsn);

  /// Primary: every member is to flush soon.
  void RequestFlush(Clock::TimePoint now);

  /// The content asked for by Load is there.
  void Loaded(Clock::TimePoint now);

  /// All parts of a copy have been acknowledged.
  void Copied(std::uint64_t copy, Clock::TimePoint now);

  /// Learner: all parts of the copy are installed.
  void Installed(std::uint64_t copy, Clock::TimePoint now);

  void Tick(Clock::TimePoint now);
  [[nodiscard]] Clock::TimePoint NextTick() const;

  // --- What the primary is asked for

  /// Whether an entry may be appended now.
  [[nodiscard]] bool CanAppend() const;

  /// Appends an entry, whose lsn and origin are set here. CanAppend() must hold. It may be
  /// committed on return.
  Lsn Append(Entry entry, Clock::TimePoint now);

  /// Whether the bucket may be read now: what is committed is then the truth.
  [[nodiscard]] bool CanRead(Clock::TimePoint now) const;

  // --- How it stands

  [[nodiscard]] Role role() const { return role_; }

  /// Learner: the copy under way. 0: none.
  [[nodiscard]] std::uint64_t copy() const { return copy_; }
  [[nodiscard]] const Configuration& configuration() const { return configuration_; }
  [[nodiscard]] bool IsPrimary() const { return role_ >= Role::kLoading; }
  [[nodiscard]] Lsn committed() const { return committed_; }

  /// What this replica knows to be on the disks of all members, whoever they are until the
  /// generation ends. It learns of others as the primary.
  [[nodiscard]] Lsn durable() const { return durable_; }
  [[nodiscard]] Lsn prepared() const { return committed_ + log_.size(); }

  /// The entries prepared and not committed, in order.
  [[nodiscard]] const std::deque<EntryPtr>& log() const { return log_; }
  [[nodiscard]] ReplicaStatus status() const;
  [[nodiscard]] const FailoverTimes& failover() const { return failover_; }

 private:
  /// Another holder, as the primary sees it in this epoch.
  struct Peer {
    Holder holder;
    enum class Kind : std::uint8_t { kMember, kJoint, kCopying } kind = Kind::kMember;
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
    bool proposed = false;           ///< kJoint: it may be a member by now, if nobody told us yet
    std::uint64_t kept_bytes = 0;    ///< kCopying: of entries, which it cannot apply yet
    std::optional<Clock::TimePoint> full_since{};  ///< kCopying: kept_bytes are all it may keep
  };

  // Configurations.
  void Adopt(const Configuration& configuration, Clock::TimePoint now);
  void BecomePrimary(bool was_primary, Clock::TimePoint now);
  void BecomeSecondary(Clock::TimePoint now);
  void Leave();
  void Forget();
  void FollowAdvice(Clock::TimePoint now);

  // The primary.
  void SendBeacons(Clock::TimePoint now);
  void SendBeacon(const Peer& peer, Clock::TimePoint now);
  void SendEntries(Peer& peer, Clock::TimePoint now);
  void Acknowledged(Peer& peer, Lsn acked, Lsn flushed, Clock::TimePoint now);
  void RaiseDurable();
  void TryCommit(Clock::TimePoint now);
  void CommitOne();
  void ServeIfReconciled(Clock::TimePoint now);
  void CheckPeers(Clock::TimePoint now);
  void Drop(const Holder& holder, Clock::TimePoint now);
  void TryAdd(Clock::TimePoint now);
  void BeginCopy(const Holder& learner, Clock::TimePoint now);
  void GiveUpCopy();
  void KeptByLearner(Peer& peer, std::uint64_t bytes, Clock::TimePoint now) const;
  void CheckCopy(Clock::TimePoint now);
  void Release(Clock::TimePoint now);
  [[nodiscard]] bool LeaseHolds(Clock::TimePoint now) const;
  [[nodiscard]] Lsn AckedByAll() const;
  [[nodiscard]] Peer* FindPeer(const Holder& holder);
  [[nodiscard]] Peer* FindLearner();
  [[nodiscard]] bool Counts(const Peer& peer, std::uint64_t copy) const;
  [[nodiscard]] bool FollowsAdvice() const;
  void CheckDrop(Clock::TimePoint now);
  [[nodiscard]] bool IsLost(const Peer& peer, Clock::TimePoint now) const;
  [[nodiscard]] const Peer* FindLost(Clock::TimePoint now) const;
  [[nodiscard]] bool LearnerWaits() const;

  // Messages.
  void Handle(const Holder& from, const Prepare& prepare, Clock::TimePoint now);
  void Handle(const Holder& from, const PrepareAck& ack, Clock::TimePoint now);
  void Handle(const Holder& from, const Beacon& beacon, Clock::TimePoint now);
  void Handle(const Holder& from, const BeaconAnswer& answer, Clock::TimePoint now);
  void Handle(const Holder& from, const Released& released, Clock::TimePoint now);
  void Handle(const Holder& from, const CopyBegin& begin, Clock::TimePoint now);
  void Handle(const Holder& /*from*/, const CopyPart& /*part*/, Clock::TimePoint /*now*/) {}
  void Handle(const Holder& from, const CopyAck& ack, Clock::TimePoint now);

  // The secondary.
  [[nodiscard]] bool Follows(const Holder& from) const;
  void StartEpochAt(Lsn base);
  void Accept(const EntryPtr& entry);
  [[nodiscard]] bool MustPersist(const Entry& entry) const;
  void KeepEntry(const EntryPtr& entry);
  void AdvancePersisted();
  void Acknowledge(bool gap);
  void AnswerBeacon();
  [[nodiscard]] Lsn Acked() const;
  [[nodiscard]] Lsn OnDisk() const;
  void LearnCommitted(Lsn committed);
  void ProposeTakeOver(bool released, Clock::TimePoint now);

  void RepeatProposals(Clock::TimePoint now);
  void Propose(Proposal::Kind kind, const Holder& subject, bool released, Clock::TimePoint now);
  void Send(const Holder& to, decltype(PeerMessage::kind) kind);
  [[nodiscard]] bool IsDead(const Holder& holder) const;

  const BucketId bucket_;
  const Options options_;
  ReplicaHost& host_;

  Configuration configuration_;
  Role role_ = Role::kNone;
  bool has_content_ = false;
  std::vector<Holder> dead_;

  // The log.
  Lsn committed_ = 0;
  std::deque<EntryPtr> log_;  // entries committed_ + 1, …
  std::uint64_t log_bytes_ = 0;
  Lsn persisted_ = 0;                  // up to here all that must be stored is
  std::deque<std::uint64_t> storing_;  // tickets of what must be stored behind it, in order
  std::uint64_t last_ticket_ = 0;
  Lsn changed_ = 0;          // last committed entry with updates, which are what a flush is for
  Lsn first_unflushed_ = 0;  // the first one since all were flushed; counts while changed_ is not
  Lsn flushed_ = 0;
  Lsn durable_ = 0;

  // The primary.
  std::vector<Peer> peers_;
  Lsn base_ = 0;       // committed when the epoch began
  Lsn promotion_ = 0;  // prepared when the epoch began: to be committed before serving
  Clock::TimePoint next_beacon_{};
  bool flush_wanted_ = false;  // primary: to be told; secondary: the primary waits for it
  std::uint64_t last_copy_ = 0;
  Clock::TimePoint next_copy_{};  // not before
  Clock::TimePoint next_release_{};
  std::optional<Holder> heir_;  // kDraining: to whom

  // The secondary and the learner.
  std::optional<Lsn> acked_;  // in this epoch
  Lsn known_committed_ = 0;   // what the primary says
  Clock::TimePoint promised_until_{};
  Clock::TimePoint last_beacon_{};
  std::optional<Clock::TimePoint> beacon_sent_;  // of the last one answered in this epoch
  std::uint64_t copy_ = 0;                       // learner: that is under way

  // Both.
  std::optional<Proposal> proposal_;  // open: to take over or to add; binds until the epoch changes
  std::optional<Proposal> drop_;      // open: may be withdrawn, and may still be taken then
  Clock::TimePoint proposed_at_{};
  Clock::TimePoint repeat_at_{};
  FailoverTimes failover_;
  Clock::TimePoint adopted_at_{};
};

}  // namespace adamant::parameter_server
