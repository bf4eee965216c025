#include <algorithm>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/failpoint.h"
#include "services/parameter_server/core/replication/replica.h"

// The primary: entries, beacons, commits, learners.
namespace adamant::parameter_server {
namespace {

constexpr auto kResendAfter = std::chrono::seconds(1);
// A burst behind a gap is answered once each: only the first such answer starts it again.
constexpr auto kRewindAgainAfter = std::chrono::milliseconds(20);
constexpr auto kCopyAgainAfter = std::chrono::milliseconds(200);
// In leases: a copy that is too slow for the traffic holds it up for one of them, then not for ten.
constexpr int kCopyAgainAfterFull = 10;

}  // namespace

Replica::Peer* Replica::FindPeer(const Holder& holder) {
  const auto found = std::ranges::find(peers_, holder, &Peer::holder);
  return found == peers_.end() ? nullptr : &*found;
}

Replica::Peer* Replica::FindLearner() {
  const auto found = std::ranges::find_if(
      peers_, [](const Peer& peer) { return peer.kind != Peer::Kind::kMember; });
  return found == peers_.end() ? nullptr : &*found;
}

// What a learner had of a copy that was given up, it has no longer.
bool Replica::Counts(const Peer& peer, std::uint64_t copy) const {
  return copy == (peer.kind == Peer::Kind::kMember ? 0 : last_copy_);
}

void Replica::Send(const Holder& to, decltype(PeerMessage::kind) kind) {
  host_.Send(to, {.bucket = bucket_, .epoch = configuration_.epoch, .kind = std::move(kind)});
}

// --- Entries

// A bucket that is not known to have been created would be created anew if this server died.
bool Replica::CanAppend() const {
  return role_ == Role::kServing && configuration_.created &&
         configuration_.members.size() >= options_.min_in_sync &&
         log_bytes_ < options_.max_log_bytes &&
         std::ranges::none_of(peers_, [](const Peer& peer) { return peer.full_since.has_value(); });
}

Lsn Replica::Append(Entry entry, Clock::TimePoint now) {
  ADAMANT_CHECK(CanAppend(), "the primary was asked whether it may append");
  entry.lsn = prepared() + 1;
  entry.origin = configuration_.epoch;
  const Lsn lsn = entry.lsn;
  const std::uint64_t bytes = entry.bytes;
  ADAMANT_FAILPOINT("replica/append");
  KeepEntry(std::make_shared<const Entry>(std::move(entry)));
  for (Peer& peer : peers_) {
    KeptByLearner(peer, bytes, now);
    if (peer.acked + 1 == lsn) {
      peer.progress_at = now;  // it owed nothing
    }
    SendEntries(peer, now);
  }
  TryCommit(now);
  return lsn;
}

void Replica::SendEntries(Peer& peer, Clock::TimePoint now) {
  if (!peer.in_step || peer.sent >= prepared()) {
    return;
  }
  if (peer.sent < committed_) {
    peer.stale = true;  // a learner: what it lacks must come with a new copy
    return;
  }
  while (peer.sent < prepared()) {
    const EntryPtr& entry = log_[peer.sent - committed_];
    ADAMANT_FAILPOINT("replica/send_prepare");
    Send(peer.holder, Prepare{.base = base_, .committed = committed_, .entry = entry});
    ++peer.sent;
  }
  peer.resend_at = now + kResendAfter;
}

void Replica::Handle(const Holder& from, const PrepareAck& ack, Clock::TimePoint now) {
  Peer* const peer = IsPrimary() ? FindPeer(from) : nullptr;
  if (peer == nullptr || !Counts(*peer, ack.copy) || ack.acked > prepared() ||
      ack.flushed > prepared()) {
    return;
  }
  ADAMANT_FAILPOINT("replica/count_acknowledgement");
  Acknowledged(*peer, ack.acked, ack.flushed, now);
  if (ack.gap && peer->sent > peer->acked && now >= peer->rewind_at) {
    peer->rewind_at = now + kRewindAgainAfter;
    peer->sent = peer->acked;
    SendEntries(*peer, now);
  }
  TryCommit(now);
}

void Replica::Acknowledged(Peer& peer, Lsn acked, Lsn flushed, Clock::TimePoint now) {
  if (acked > peer.acked) {
    peer.acked = acked;
    peer.sent = std::max(peer.sent, acked);
    peer.progress_at = now;
  }
  peer.flushed = std::max(peer.flushed, flushed);
  RaiseDurable();
}

bool Replica::MustPersist(const Entry& entry) const {
  return options_.logging == Logging::kAll ||
         (options_.logging == Logging::kRecords && !entry.puts.empty());
}

// Takes an entry into the log, behind the others.
void Replica::KeepEntry(const EntryPtr& entry) {
  log_.push_back(entry);
  log_bytes_ += entry->bytes;
  if (MustPersist(*entry)) {
    storing_.push_back(++last_ticket_);
    host_.Persist(bucket_, entry, last_ticket_);
  }
  AdvancePersisted();
}

void Replica::AdvancePersisted() {
  while (persisted_ < prepared() && !MustPersist(*log_[persisted_ - committed_])) {
    ++persisted_;
  }
}

// --- Commit

Lsn Replica::AckedByAll() const {
  Lsn acked = persisted_;
  for (const Peer& peer : peers_) {
    if (peer.kind != Peer::Kind::kCopying) {
      acked = std::min(acked, peer.acked);
    }
  }
  return acked;
}

bool Replica::LeaseHolds(Clock::TimePoint now) const {
  return std::ranges::all_of(peers_, [&](const Peer& peer) {
    return peer.kind == Peer::Kind::kCopying ||
           (peer.answered.has_value() && now - *peer.answered < options_.times.lease);
  });
}

void Replica::TryCommit(Clock::TimePoint now) {
  if (!IsPrimary() || role_ == Role::kLoading) {
    return;
  }
  if (configuration_.members.size() >= options_.min_in_sync && LeaseHolds(now)) {
    const Lsn limit = AckedByAll();
    while (committed_ < limit) {
      CommitOne();
    }
  }
  ServeIfReconciled(now);
  Release(now);
  TryAdd(now);
}

void Replica::CommitOne() {
  ADAMANT_FAILPOINT("replica/commit");
  const EntryPtr entry = std::move(log_.front());
  log_.pop_front();
  log_bytes_ -= entry->bytes;
  ++committed_;
  if (!entry->updates.empty()) {
    first_unflushed_ = flushed_ >= changed_ ? committed_ : first_unflushed_;
    changed_ = committed_;
  }
  host_.Commit(bucket_, entry);
}

void Replica::ServeIfReconciled(Clock::TimePoint now) {
  if (role_ == Role::kReconciling && committed_ >= promotion_) {
    ADAMANT_FAILPOINT("replica/serve");
    role_ = Role::kServing;
    failover_.reconcile = now - adopted_at_;
    host_.Serving(bucket_);
    FollowAdvice(now);
  }
}

bool Replica::CanRead(Clock::TimePoint now) const {
  return role_ == Role::kServing && LeaseHolds(now);
}

void Replica::Persisted(std::uint64_t ticket, Clock::TimePoint now) {
  if (storing_.empty() || storing_.front() != ticket) {
    return;
  }
  storing_.pop_front();
  ++persisted_;
  AdvancePersisted();
  if (IsPrimary()) {
    TryCommit(now);
  } else if (acked_.has_value()) {
    Acknowledge(false);
    LearnCommitted(known_committed_);
  }
}

// --- What is on the disks

void Replica::Flushed(Lsn lsn) {
  flushed_ = std::max(flushed_, lsn);
  if (IsPrimary()) {
    RaiseDurable();
  } else if (flush_wanted_ && acked_.has_value()) {
    flush_wanted_ = false;
    Acknowledge(false);
  }
}

// What comes before the first change that a disk lacks changes nothing that it has to hold.
Lsn Replica::OnDisk() const {
  return flushed_ >= changed_ ? committed_ : std::max(flushed_, first_unflushed_ - 1);
}

// A learner counts as soon as it may be a member. Until then what is durable may pass it by: it is
// added when it has caught up.
void Replica::RaiseDurable() {
  Lsn durable = OnDisk();
  for (const Peer& peer : peers_) {
    if (peer.kind != Peer::Kind::kCopying) {
      durable = std::min(durable, peer.flushed);
    }
  }
  durable_ = std::max(durable_, durable);
}

void Replica::RequestFlush(Clock::TimePoint now) {
  if (IsPrimary() && !peers_.empty()) {
    flush_wanted_ = true;
    next_beacon_ = std::min(next_beacon_, now);
  }
}

// --- Beacons

void Replica::SendBeacons(Clock::TimePoint now) {
  next_beacon_ = now + options_.times.beacon;
  if (role_ == Role::kLoading) {
    return;
  }
  for (const Peer& peer : peers_) {
    if (peer.kind != Peer::Kind::kCopying) {
      SendBeacon(peer, now);
    }
  }
  flush_wanted_ = false;
}

void Replica::SendBeacon(const Peer& peer, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/send_beacon");
  Send(peer.holder,
       Beacon{.generation = configuration_.generation,
              .primary = configuration_.primary,
              .members = configuration_.members,
              .base = base_,
              .committed = committed_,
              .sent = now,
              .flush = flush_wanted_ || peer.flushed < durable_});
}

void Replica::Handle(const Holder& from, const BeaconAnswer& answer, Clock::TimePoint now) {
  Peer* const peer = IsPrimary() ? FindPeer(from) : nullptr;
  if (peer == nullptr || !Counts(*peer, answer.copy) || answer.sent > now ||
      answer.acked > prepared() || answer.flushed > prepared()) {
    return;
  }
  ADAMANT_FAILPOINT("replica/renew_lease");
  if (!peer->answered.has_value() || answer.sent > *peer->answered) {
    peer->answered = answer.sent;
    peer->heard = std::max(peer->heard, answer.sent);
  }
  Acknowledged(*peer, answer.acked, answer.flushed, now);
  if (!peer->in_step) {
    peer->in_step = true;
    peer->sent = peer->acked;
    SendEntries(*peer, now);
  }
  TryCommit(now);
}

void Replica::OnConnected(const Holder& holder, Clock::TimePoint now) {
  if (Follows(holder) && role_ != Role::kProposing && beacon_sent_.has_value()) {
    return AnswerBeacon();
  }
  Peer* const peer = IsPrimary() && role_ != Role::kLoading ? FindPeer(holder) : nullptr;
  if (peer == nullptr) {
    return;
  }
  if (peer->kind == Peer::Kind::kCopying) {
    GiveUpCopy();
    return FollowAdvice(now);
  }
  peer->in_step = false;
  SendBeacon(*peer, now);
}

void Replica::CheckPeers(Clock::TimePoint now) {
  for (Peer& peer : peers_) {
    if (peer.in_step && peer.acked < peer.sent && now >= peer.resend_at) {
      peer.sent = peer.acked;
      SendEntries(peer, now);
    }
  }
  CheckCopy(now);
  CheckDrop(now);
}

bool Replica::IsLost(const Peer& peer, Clock::TimePoint now) const {
  const bool stuck = peer.acked < prepared() && now - 2 * options_.times.lease >= peer.progress_at;
  return IsDead(peer.holder) || now - peer.heard >= options_.times.lease || stuck || peer.stale;
}

// A member to do without; nullptr: none. The controller may not let go who is not proved to be
// dead. A learner that was proposed cannot simply be given up, since it may be a member by now: to
// drop it settles that.
const Replica::Peer* Replica::FindLost(Clock::TimePoint now) const {
  const Peer* lost = nullptr;
  for (const Peer& peer : peers_) {
    if ((peer.kind == Peer::Kind::kMember || peer.proposed) && IsLost(peer, now) &&
        (lost == nullptr || (IsDead(peer.holder) && !IsDead(lost->holder)))) {
      lost = &peer;
    }
  }
  return lost;
}

void Replica::CheckDrop(Clock::TimePoint now) {
  if (const Peer* const lost = FindLost(now)) {
    if (!drop_.has_value() || drop_->subject != lost->holder) {
      Drop(lost->holder, now);
    }
  } else if (drop_.has_value() && configuration_.Has(drop_->subject) &&
             configuration_.leaver != drop_->subject) {
    drop_.reset();  // it is back
  }
}

// --- Learners

void Replica::BeginCopy(const Holder& learner, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("copy/begin");
  peers_.push_back({.holder = learner,
                    .kind = Peer::Kind::kCopying,
                    .in_step = true,
                    .acked = committed_,
                    .sent = committed_,
                    .heard = now,
                    .progress_at = now});
  KeptByLearner(peers_.back(), log_bytes_, now);
  host_.StartCopy(bucket_, learner, ++last_copy_, committed_);
  SendEntries(peers_.back(), now);
}

void Replica::GiveUpCopy() {
  if (FindLearner() != nullptr) {
    std::erase_if(peers_, [](const Peer& peer) { return peer.kind != Peer::Kind::kMember; });
    host_.StopCopy(bucket_);
  }
}

// What is prepared since the copy began: the learner keeps it until the copy is there.
void Replica::KeptByLearner(Peer& peer, std::uint64_t bytes, Clock::TimePoint now) const {
  if (peer.kind == Peer::Kind::kCopying) {
    peer.kept_bytes += bytes;
    if (peer.kept_bytes >= options_.max_log_bytes && !peer.full_since.has_value()) {
      peer.full_since = now;
    }
  }
}

void Replica::CheckCopy(Clock::TimePoint now) {
  const Peer* const learner = FindLearner();
  if (learner == nullptr || learner->proposed) {
    return;
  }
  if (IsLost(*learner, now)) {
    next_copy_ = now + kCopyAgainAfter;
    GiveUpCopy();
  } else if (learner->full_since.has_value() &&
             now - *learner->full_since >= options_.times.lease) {
    next_copy_ = now + kCopyAgainAfterFull * options_.times.lease;
    GiveUpCopy();
  }
}

void Replica::Handle(const Holder& from, const CopyAck& ack, Clock::TimePoint now) {
  if (Peer* const peer = IsPrimary() ? FindPeer(from) : nullptr;
      peer != nullptr && peer->kind == Peer::Kind::kCopying && ack.copy == last_copy_) {
    peer->heard = now;
  }
}

void Replica::Copied(std::uint64_t copy, Clock::TimePoint now) {
  Peer* const learner = FindLearner();
  if (learner == nullptr || learner->kind != Peer::Kind::kCopying || copy != last_copy_) {
    return;
  }
  learner->kind = Peer::Kind::kJoint;
  learner->full_since.reset();
  learner->heard = now;
  learner->joint_from = committed_;
  SendBeacon(*learner, now);
  TryAdd(now);
}

// All that was committed without the learner it has acknowledged, and what is committed since has
// waited for it. What this primary took over may have been committed before, though it does not
// know. And its disk has what workers were told to be on all of them.
void Replica::TryAdd(Clock::TimePoint now) {
  Peer* const learner = FindLearner();
  if (learner != nullptr && learner->kind == Peer::Kind::kJoint && !proposal_.has_value() &&
      learner->acked >= std::max({learner->joint_from, committed_, promotion_}) &&
      learner->flushed >= durable_) {
    ADAMANT_FAILPOINT("replica/propose_add");
    learner->proposed = true;
    Propose(Proposal::Kind::kAdd, learner->holder, false, now);
  }
}

}  // namespace adamant::parameter_server
