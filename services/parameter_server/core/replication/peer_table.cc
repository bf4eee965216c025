#include "services/parameter_server/core/replication/peer_table.h"

#include <algorithm>

namespace adamant::parameter_server {

bool PeerTable::IsDead(const ServerId& server) const {
  return std::ranges::find(dead_, server) != dead_.end();
}

Peer& PeerTable::Add(const ServerId& server, Peer::Kind kind, Lsn committed, Clock::TimePoint now) {
  peers_.push_back({.server = server,
                    .kind = kind,
                    .in_step = kind == Peer::Kind::kCopying,
                    .acked = committed,
                    .sent = committed,
                    .heard = now,
                    .progress_at = now});
  return peers_.back();
}

bool PeerTable::RemoveLearner() {
  return std::erase_if(peers_, [](const Peer& peer) { return peer.kind != Peer::Kind::kReplica; }) >
         0;
}

Peer* PeerTable::Find(const ServerId& server) {
  const auto found = std::ranges::find(peers_, server, &Peer::server);
  return found == peers_.end() ? nullptr : &*found;
}

Peer* PeerTable::FindLearner() {
  const auto found = std::ranges::find_if(
      peers_, [](const Peer& peer) { return peer.kind != Peer::Kind::kReplica; });
  return found == peers_.end() ? nullptr : &*found;
}

Lsn PeerTable::AckedByAll(Lsn persisted) const {
  Lsn acked = persisted;
  for (const Peer& peer : peers_) {
    if (peer.kind != Peer::Kind::kCopying) {
      acked = std::min(acked, peer.acked);
    }
  }
  return acked;
}

Lsn PeerTable::OnAllDisks(Lsn on_disk) const {
  Lsn durable = on_disk;
  for (const Peer& peer : peers_) {
    if (peer.kind != Peer::Kind::kCopying) {
      durable = std::min(durable, peer.flushed);
    }
  }
  return durable;
}

bool PeerTable::LeaseHolds(Clock::TimePoint now) const {
  return std::ranges::all_of(peers_, [&](const Peer& peer) {
    return peer.kind == Peer::Kind::kCopying ||
           (peer.answered.has_value() && now - *peer.answered < times_.lease);
  });
}

bool PeerTable::AnyIsFull() const {
  return std::ranges::any_of(peers_, [](const Peer& peer) { return peer.full_since.has_value(); });
}

bool PeerTable::IsLost(const Peer& peer, Lsn prepared, Clock::TimePoint now) const {
  const bool stuck = peer.acked < prepared && now - 2 * times_.lease >= peer.progress_at;
  return IsDead(peer.server) || now - peer.heard >= times_.lease || stuck || peer.stale;
}

const Peer* PeerTable::FindLost(Lsn prepared, Clock::TimePoint now) const {
  const Peer* lost = nullptr;
  for (const Peer& peer : peers_) {
    if ((peer.kind == Peer::Kind::kReplica || peer.proposed) && IsLost(peer, prepared, now) &&
        (lost == nullptr || (IsDead(peer.server) && !IsDead(lost->server)))) {
      lost = &peer;
    }
  }
  return lost;
}

Clock::TimePoint PeerTable::NextCheck(bool dropping) const {
  Clock::TimePoint next = Clock::TimePoint::max();
  for (const Peer& peer : peers_) {
    if (!dropping) {
      next = std::min(next, peer.heard + times_.lease);
    }
    if (peer.in_step && peer.acked < peer.sent) {
      next = std::min(next, peer.resend_at);
    }
    if (peer.full_since.has_value()) {
      next = std::min(next, *peer.full_since + times_.lease);
    }
  }
  return next;
}

}  // namespace adamant::parameter_server
