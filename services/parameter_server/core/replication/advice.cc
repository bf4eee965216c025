#include "services/parameter_server/core/replication/advice.h"

#include <algorithm>

namespace adamant::parameter_server {

std::optional<Holder> Advice::NotToAdd() const {
  if (proposals_.Binds(Proposal::Kind::kAdd) &&
      configuration_.learner != proposals_.binding()->subject && !proposals_.drop().has_value()) {
    return proposals_.binding()->subject;
  }
  return std::nullopt;
}

std::optional<Holder> Advice::Heir() const {
  const std::optional<Holder>& heir = configuration_.heir;
  const bool can_be =
      heir.has_value() && *heir != self_ && configuration_.Has(*heir) && !peers_.IsDead(*heir);
  return can_be ? heir : std::nullopt;
}

std::optional<Holder> Advice::Leaver() const {
  const std::optional<Holder>& leaver = configuration_.leaver;
  const bool leaves = leaver.has_value() && *leaver != self_ && configuration_.Has(*leaver) &&
                      !proposals_.drop().has_value();
  return leaves ? leaver : std::nullopt;
}

bool Advice::GivesUpCopy() const {
  return std::ranges::any_of(peers_.all(), [this](const Peer& peer) {
    return peer.kind != Peer::Kind::kMember && configuration_.learner != peer.holder;
  });
}

std::optional<Holder> Advice::Learner() const {
  const std::optional<Holder>& learner = configuration_.learner;
  const bool copying = peers_.all().size() == configuration_.members.size();
  const bool waits =
      learner.has_value() && !copying && !configuration_.Has(*learner) && !peers_.IsDead(*learner);
  return waits ? learner : std::nullopt;
}

}  // namespace adamant::parameter_server
