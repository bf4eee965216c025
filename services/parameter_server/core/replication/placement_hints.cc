#include "services/parameter_server/core/replication/placement_hints.h"

#include <algorithm>

namespace adamant::parameter_server {

std::optional<ServerId> PlacementHints::NotToAdd() const {
  if (proposals_.Binds(Proposal::Kind::kAdd) &&
      configuration_.learner != proposals_.binding()->subject && !proposals_.drop().has_value()) {
    return proposals_.binding()->subject;
  }
  return std::nullopt;
}

std::optional<ServerId> PlacementHints::Successor() const {
  const std::optional<ServerId>& successor = configuration_.successor;
  const bool can_be = successor.has_value() && *successor != self_ &&
                      configuration_.Has(*successor) && !peers_.IsDead(*successor);
  return can_be ? successor : std::nullopt;
}

std::optional<ServerId> PlacementHints::Departing() const {
  const std::optional<ServerId>& departing = configuration_.departing;
  const bool leaves = departing.has_value() && *departing != self_ &&
                      configuration_.Has(*departing) && !proposals_.drop().has_value();
  return leaves ? departing : std::nullopt;
}

bool PlacementHints::GivesUpCopy() const {
  return std::ranges::any_of(peers_.all(), [this](const Peer& peer) {
    return peer.kind != Peer::Kind::kReplica && configuration_.learner != peer.server;
  });
}

std::optional<ServerId> PlacementHints::Learner() const {
  const std::optional<ServerId>& learner = configuration_.learner;
  const bool copying = peers_.all().size() == configuration_.replicas.size();
  const bool waits =
      learner.has_value() && !copying && !configuration_.Has(*learner) && !peers_.IsDead(*learner);
  return waits ? learner : std::nullopt;
}

}  // namespace adamant::parameter_server
