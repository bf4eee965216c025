#include "tests/simulation/job/processes/peers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "services/common/base/rng.h"

namespace adamant::simulation {

Peers::Peers(World& world,
             Endpoint& owner,
             const ServerId& self,
             std::function<void(ServerId)> connected)
    : world_(world), owner_(owner), self_(self), connected_(std::move(connected)) {}

void Peers::Update(const controller::Membership& view) {
  std::map<ServerId, std::string> wanted;
  for (const controller::Member& member : view.members) {
    if (member.id.role == controller::Role::kParameterServer && member.id.slot != self_.slot) {
      wanted[{.slot = member.id.slot, .incarnation = member.incarnation}] =
          member.replication_address;
    }
  }
  std::erase_if(ways_, [&](const auto& entry) {
    const bool gone = !wanted.contains(entry.first.first);
    if (gone) {
      world_.network.Close(entry.second.stream, owner_);
    }
    return gone;
  });
  for (const auto& [server, address] : wanted) {
    for (const bool bulk : {false, true}) {
      const auto [entry, added] = ways_.try_emplace({server, bulk});
      if (added) {
        Way& way = entry->second;
        way.address = address;
        way.number = ++ways_made_;
        way.backoff.emplace(BackoffOptions{.initial = milliseconds(50), .max = milliseconds(500)},
                            MixSeed(self_.incarnation, way.number));
        Connect(entry->first, way.number);
      }
    }
  }
}

void Peers::Connect(const Key& key, std::uint64_t number) {
  const auto found = ways_.find(key);
  if (found == ways_.end() || found->second.number != number) {
    return;
  }
  Way& way = found->second;
  way.stream = world_.network.Open(owner_, way.address, StreamKind::kReplication);
  world_.network.Send(way.stream, owner_, PeerHello{.from = self_, .to = key.first});
}

void Peers::SendTo(const ServerId& to, parameter_server::PeerMessage message) {
  const auto way = ways_.find({to, message.bulk()});
  if (way != ways_.end() && way->second.open) {
    world_.network.Send(way->second.stream, owner_, PeerLetter{std::move(message)});
  }
}

void Peers::OnHelloReply(StreamId stream) {
  for (auto& [key, way] : ways_) {
    if (way.stream == stream) {
      way.open = true;
      way.backoff->Reset();
      return connected_(key.first);
    }
  }
}

void Peers::OnEnded(StreamId stream) {
  for (auto& [key, way] : ways_) {
    if (way.stream == stream) {
      way.open = false;
      way.stream = 0;
      world_.scheduler.After(way.backoff->Next(),
                             owner_.life,
                             [this, key = key, number = way.number] { Connect(key, number); });
      return;
    }
  }
}

}  // namespace adamant::simulation
