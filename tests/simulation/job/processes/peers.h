#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "operator/core/state/messages.h"
#include "services/common/base/backoff.h"
#include "services/parameter_server/core/replication/messages.h"
#include "tests/simulation/job/network/network.h"
#include "tests/simulation/job/processes/world.h"

namespace adamant::simulation {

/// A parameter server's streams to the others: two to each, bulk and control, opened again whenever
/// they break. Mirrors services/parameter_server/rpc/peers/peers.h.
/// Threads: one.
class Peers {
 public:
  using ServerId = parameter_server::ServerId;

  /// `owner` is the server, `connected` hears of every way that is open anew. All outlive this.
  Peers(World& world,
        Endpoint& owner,
        const ServerId& self,
        std::function<void(ServerId)> connected);

  /// Opens streams to the servers in the membership, and closes those to others.
  void Update(const controller::Membership& view);

  /// Drops the message unless the way to this very server is open.
  void SendTo(const ServerId& to, parameter_server::PeerMessage message);

  void OnHelloReply(StreamId stream);
  void OnEnded(StreamId stream);

 private:
  struct Way {
    std::string address;
    std::uint64_t number = 0;  // of all ways; tells this one from a later one in its place
    std::optional<Backoff> backoff;
    StreamId stream = 0;
    bool open = false;
  };
  using Key = std::pair<ServerId, bool>;  // bulk

  void Connect(const Key& key, std::uint64_t number);

  World& world_;
  Endpoint& owner_;
  const ServerId self_;
  const std::function<void(ServerId)> connected_;
  std::map<Key, Way> ways_;
  std::uint64_t ways_made_ = 0;
};

}  // namespace adamant::simulation
