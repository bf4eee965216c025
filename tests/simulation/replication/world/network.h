#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tests/simulation/replication/world/setup.h"

namespace adamant::replication_simulation {

/// Where processes run: the servers' slots, then the controller, the writers, the clerks,
/// and servers whose volume is attached elsewhere.
using Place = std::uint32_t;

/// What flows between two places in one direction. Each kind keeps its order where streams do.
enum class Channel : std::uint8_t { kBulk, kPeerControl, kController, kWriter };
inline constexpr std::size_t kChannels = 4;

/// Messages between places. To the controller they go in streams: in order and without loss until
/// the stream breaks. Between servers they go in streams or, in other seeds, as datagrams. To and
/// from writers they go as datagrams.
/// Threads: one.
class Network {
 public:
  using Arrival = std::function<void()>;

  Network(Scheduler& scheduler, const Setup& setup);

  /// Runs `arrive` in the receiver's life when the message is there: once, twice or never. Returns
  /// false if it is known to be lost, as its stream is broken then.
  bool Send(Place from, Place to, Channel channel, const LifePtr& receiver, Arrival arrive);

  /// Called when `from` has a new stream to `to`: what it sent before may be lost.
  std::function<void(Place from, Place to)> on_opened;

  /// Called when a stream between this server and the controller breaks.
  std::function<void(Place server)> on_controller_lost;

  // --- Faults

  void Cut(Place from, Place to) { At(from, to).cut = true; }
  void Mend(Place from, Place to) { At(from, to).cut = false; }
  void SetLoss(Place from, Place to, double share) { At(from, to).loss = share; }
  void SetDelay(Place from, Place to, Clock::Duration delay) { At(from, to).delay = delay; }
  void Break(Place from, Place to);

  /// Ends all faults. From then on datagrams keep their order as well: a copy whose parts overtake
  /// its beginning starts again, and would do so many times.
  void MendAll();

 private:
  struct Stream {
    std::uint64_t number = 0;  // what was sent on an earlier one never arrives
    bool open = true;
    Clock::TimePoint last_arrival{};
  };
  struct Direction {
    bool cut = false;
    double loss = 0;
    Clock::Duration delay{0};
    Stream streams[kChannels];
  };

  Direction& At(Place from, Place to) { return directions_[{from, to}]; }
  [[nodiscard]] bool InOrder(Channel channel) const {
    return channel == Channel::kController || (channel != Channel::kWriter && setup_.streams);
  }
  [[nodiscard]] bool IsLost(const Direction& direction);
  Clock::Duration Latency(const Direction& direction, bool in_order);
  Clock::TimePoint ArrivalOf(Direction& direction, Channel channel);
  void BreakStream(Place from, Place to, Channel channel);
  void PlanOpening(Place from, Place to, Channel channel);

  Scheduler& scheduler_;
  const Setup& setup_;
  double background_loss_;
  bool orderly_ = false;
  std::map<std::pair<Place, Place>, Direction> directions_;
};

}  // namespace adamant::replication_simulation
