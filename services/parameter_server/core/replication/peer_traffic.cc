#include "services/parameter_server/core/replication/peer_traffic.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "services/common/base/failpoint.h"

namespace adamant::parameter_server {
namespace {

constexpr auto kResendAfter = std::chrono::seconds(1);
// A burst behind a gap is answered once each: only the first such answer starts it again.
constexpr auto kRewindAgainAfter = std::chrono::milliseconds(20);
constexpr auto kCopyAgainAfter = std::chrono::milliseconds(200);
// In leases: a copy that is too slow for the traffic holds it up for one of them, then not for ten.
constexpr int kCopyAgainAfterFull = 10;

}  // namespace

void PeerTraffic::Clear() {
  peers_.Clear();
  flush_wanted_ = false;
}

void PeerTraffic::BeginConfiguration(const ServerId& self, Clock::TimePoint now) {
  for (const ServerId& replica : configuration_.replicas) {
    if (replica != self) {
      peers_.Add(replica, Peer::Kind::kReplica, log_.committed(), now);
    }
  }
  base_ = log_.committed();
}

// What a learner had of a copy that was given up, it has no longer.
bool PeerTraffic::Counts(const Peer& peer, std::uint64_t copy) const {
  return copy == (peer.kind == Peer::Kind::kReplica ? 0 : last_copy_);
}

void PeerTraffic::Send(const ServerId& to, decltype(PeerMessage::kind) kind) {
  host_.Send(to,
             {.bucket = bucket_,
              .configuration_version = configuration_.version,
              .kind = std::move(kind)});
}

// --- Entries

void PeerTraffic::OnAppended(const Entry& entry, Clock::TimePoint now) {
  for (Peer& peer : peers_.all()) {
    KeptByLearner(peer, entry.bytes, now);
    if (peer.acked + 1 == entry.lsn) {
      peer.progress_at = now;  // it owed nothing
    }
    SendEntries(peer, now);
  }
}

void PeerTraffic::SendEntries(Peer& peer, Clock::TimePoint now) {
  if (!peer.in_step || peer.sent >= log_.prepared()) {
    return;
  }
  if (peer.sent < log_.committed()) {
    peer.stale = true;  // a learner: what it lacks must come with a new copy
    return;
  }
  while (peer.sent < log_.prepared()) {
    const EntryPtr& entry = log_.At(peer.sent + 1);
    ADAMANT_FAILPOINT("replica/send_prepare");
    Send(peer.server, Prepare{.base = base_, .committed = log_.committed(), .entry = entry});
    ++peer.sent;
  }
  peer.resend_at = now + kResendAfter;
}

bool PeerTraffic::OnAcknowledged(const ServerId& from,
                                 const PrepareAck& ack,
                                 Clock::TimePoint now) {
  Peer* const peer = peers_.Find(from);
  if (peer == nullptr || !Counts(*peer, ack.copy) || ack.acked > log_.prepared() ||
      ack.flushed > log_.prepared()) {
    return false;
  }
  ADAMANT_FAILPOINT("replica/count_acknowledgement");
  Count(*peer, ack.acked, ack.flushed, now);
  if (ack.gap && peer->sent > peer->acked && now >= peer->rewind_at) {
    peer->rewind_at = now + kRewindAgainAfter;
    peer->sent = peer->acked;
    SendEntries(*peer, now);
  }
  return true;
}

void PeerTraffic::Count(Peer& peer, Lsn acked, Lsn flushed, Clock::TimePoint now) {
  if (acked > peer.acked) {
    peer.acked = acked;
    peer.sent = std::max(peer.sent, acked);
    peer.progress_at = now;
  }
  peer.flushed = std::max(peer.flushed, flushed);
  RaiseDurable();
}

void PeerTraffic::SendAgain(Clock::TimePoint now) {
  for (Peer& peer : peers_.all()) {
    if (peer.in_step && peer.acked < peer.sent && now >= peer.resend_at) {
      peer.sent = peer.acked;
      SendEntries(peer, now);
    }
  }
}

// --- What is on the disks

void PeerTraffic::RaiseDurable() {
  durable_ = std::max(durable_, peers_.OnAllDisks(log_.OnDisk()));
}

void PeerTraffic::RequestFlush(Clock::TimePoint now) {
  if (!peers_.all().empty()) {
    flush_wanted_ = true;
    next_beacon_ = std::min(next_beacon_, now);
  }
}

// --- Beacons

void PeerTraffic::PostponeBeacons(Clock::TimePoint now) { next_beacon_ = now + times_.beacon; }

void PeerTraffic::SendBeacons(Clock::TimePoint now) {
  PostponeBeacons(now);
  for (const Peer& peer : peers_.all()) {
    if (peer.kind != Peer::Kind::kCopying) {
      SendBeacon(peer, now);
    }
  }
  flush_wanted_ = false;
}

void PeerTraffic::SendBeacon(const Peer& peer, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/send_beacon");
  Send(peer.server,
       Beacon{.generation = configuration_.generation,
              .primary = configuration_.primary,
              .replicas = configuration_.replicas,
              .base = base_,
              .committed = log_.committed(),
              .sent = now,
              .flush = flush_wanted_ || peer.flushed < durable_});
}

bool PeerTraffic::OnAnswered(const ServerId& from,
                             const BeaconAnswer& answer,
                             Clock::TimePoint now) {
  Peer* const peer = peers_.Find(from);
  if (peer == nullptr || !Counts(*peer, answer.copy) || answer.sent > now ||
      answer.acked > log_.prepared() || answer.flushed > log_.prepared()) {
    return false;
  }
  ADAMANT_FAILPOINT("replica/renew_lease");
  if (!peer->answered.has_value() || answer.sent > *peer->answered) {
    peer->answered = answer.sent;
    peer->heard = std::max(peer->heard, answer.sent);
  }
  Count(*peer, answer.acked, answer.flushed, now);
  if (!peer->in_step) {
    peer->in_step = true;
    peer->sent = peer->acked;
    SendEntries(*peer, now);
  }
  return true;
}

bool PeerTraffic::OnConnected(const ServerId& server, Clock::TimePoint now) {
  Peer* const peer = peers_.Find(server);
  if (peer == nullptr) {
    return false;
  }
  if (peer->kind == Peer::Kind::kCopying) {
    GiveUpCopy();
    return true;
  }
  peer->in_step = false;
  SendBeacon(*peer, now);
  return false;
}

// --- Learners

void PeerTraffic::BeginCopy(const ServerId& learner, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("copy/begin");
  Peer& peer = peers_.Add(learner, Peer::Kind::kCopying, log_.committed(), now);
  KeptByLearner(peer, log_.bytes(), now);
  host_.StartCopy(bucket_, learner, ++last_copy_, log_.committed());
  SendEntries(peer, now);
}

void PeerTraffic::GiveUpCopy() {
  if (peers_.RemoveLearner()) {
    host_.StopCopy(bucket_);
  }
}

// What is prepared since the copy began: the learner keeps it until the copy is there.
void PeerTraffic::KeptByLearner(Peer& peer, std::uint64_t bytes, Clock::TimePoint now) const {
  if (peer.kind == Peer::Kind::kCopying) {
    peer.kept_bytes += bytes;
    if (peer.kept_bytes >= max_log_bytes_ && !peer.full_since.has_value()) {
      peer.full_since = now;
    }
  }
}

void PeerTraffic::CheckCopy(Clock::TimePoint now) {
  const Peer* const learner = peers_.FindLearner();
  if (learner == nullptr || learner->proposed) {
    return;
  }
  if (peers_.IsLost(*learner, log_.prepared(), now)) {
    next_copy_ = now + kCopyAgainAfter;
    GiveUpCopy();
  } else if (learner->full_since.has_value() && now - *learner->full_since >= times_.lease) {
    next_copy_ = now + kCopyAgainAfterFull * times_.lease;
    GiveUpCopy();
  }
}

void PeerTraffic::OnCopyAcknowledged(const ServerId& from,
                                     const CopyAck& ack,
                                     Clock::TimePoint now) {
  if (Peer* const peer = peers_.Find(from);
      peer != nullptr && peer->kind == Peer::Kind::kCopying && ack.copy == last_copy_) {
    peer->heard = now;
  }
}

bool PeerTraffic::OnCopied(std::uint64_t copy, Clock::TimePoint now) {
  Peer* const learner = peers_.FindLearner();
  if (learner == nullptr || learner->kind != Peer::Kind::kCopying || copy != last_copy_) {
    return false;
  }
  learner->kind = Peer::Kind::kJoint;
  learner->full_since.reset();
  learner->heard = now;
  learner->joint_from = log_.committed();
  SendBeacon(*learner, now);
  return true;
}

Clock::TimePoint PeerTraffic::NextCheck(bool dropping) const {
  const Clock::TimePoint next = peers_.NextCheck(dropping);
  return peers_.all().empty() ? next : std::min(next, next_beacon_);
}

}  // namespace adamant::parameter_server
