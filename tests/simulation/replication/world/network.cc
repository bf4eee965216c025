#include "tests/simulation/replication/world/network.h"

#include <algorithm>

namespace adamant::replication_simulation {
namespace {

constexpr auto kQuickest = microseconds(50);
constexpr auto kUsual = milliseconds(4);

}  // namespace

Network::Network(Scheduler& scheduler, const Setup& setup)
    : scheduler_(scheduler),
      setup_(setup),
      background_loss_(scheduler.Chance(0.5) ? 0 : (setup.streams ? 0.0002 : 0.01)) {}

bool Network::IsLost(const Direction& direction) {
  return direction.cut || scheduler_.Chance(direction.loss + background_loss_);
}

Clock::Duration Network::Latency(const Direction& direction, bool in_order) {
  auto latency = scheduler_.Random(kQuickest, kUsual) + direction.delay;
  if (!in_order && scheduler_.Chance(0.02)) {
    // Some come late, and few so late that the world has changed.
    latency += scheduler_.Chance(0.1) ? scheduler_.Random(milliseconds(100), seconds(8))
                                      : scheduler_.Random(kUsual, milliseconds(100));
  }
  return latency;
}

Clock::TimePoint Network::ArrivalOf(Direction& direction, Channel channel) {
  const bool in_order = InOrder(channel) || orderly_;
  Clock::TimePoint arrival = scheduler_.Now() + Latency(direction, in_order);
  if (in_order) {
    Clock::TimePoint& last = direction.streams[static_cast<std::size_t>(channel)].last_arrival;
    arrival = last = std::max(last, arrival);
  }
  return arrival;
}

bool Network::Send(Place from, Place to, Channel channel, const LifePtr& receiver, Arrival arrive) {
  Direction& direction = At(from, to);
  if (!InOrder(channel)) {
    const bool twice = scheduler_.Chance(0.01);
    for (int copies = twice ? 2 : 1; copies > 0; --copies) {
      if (!IsLost(direction)) {
        scheduler_.At(ArrivalOf(direction, channel), receiver, arrive);
      }
    }
    return true;
  }
  Stream& stream = direction.streams[static_cast<std::size_t>(channel)];
  if (!stream.open) {
    return false;
  }
  if (IsLost(direction)) {
    BreakStream(from, to, channel);
    return false;
  }
  scheduler_.At(ArrivalOf(direction, channel),
                receiver,
                [&stream, number = stream.number, arrive = std::move(arrive)] {
                  if (stream.number == number) {
                    arrive();
                  }
                });
  return true;
}

void Network::BreakStream(Place from, Place to, Channel channel) {
  Stream& stream = At(from, to).streams[static_cast<std::size_t>(channel)];
  if (stream.open) {
    stream.open = false;
    ++stream.number;
    if (channel == Channel::kController) {
      on_controller_lost(std::min(from, to));
    }
    PlanOpening(from, to, channel);
  }
}

void Network::PlanOpening(Place from, Place to, Channel channel) {
  scheduler_.After(scheduler_.Random(milliseconds(20), seconds(1)), nullptr, [=, this] {
    Direction& direction = At(from, to);
    if (direction.cut) {
      return PlanOpening(from, to, channel);
    }
    direction.streams[static_cast<std::size_t>(channel)].open = true;
    if (channel != Channel::kController && from < setup_.servers && to < setup_.servers) {
      on_opened(from, to);
    }
  });
}

void Network::Break(Place from, Place to) {
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    if (InOrder(static_cast<Channel>(channel))) {
      BreakStream(from, to, static_cast<Channel>(channel));
    }
  }
}

void Network::MendAll() {
  background_loss_ = 0;
  orderly_ = true;
  for (auto& [places, direction] : directions_) {
    direction.cut = false;
    direction.loss = 0;
    direction.delay = Clock::Duration(0);
  }
}

}  // namespace adamant::replication_simulation
