#include "tests/simulation/job/network/network.h"

#include <algorithm>
#include <utility>

namespace adamant::simulation {
namespace {

constexpr auto kQuickest = microseconds(50);
constexpr auto kUsual = milliseconds(4);

}  // namespace

StreamId Network::Open(Endpoint& client, const std::string& address, StreamKind kind) {
  const StreamId id = ++last_stream_;
  Stream& stream = streams_[id];
  stream.kind = kind;
  stream.sides[0].endpoint = &client;
  const auto listener = listeners_.find(address);
  if (listener == listeners_.end()) {
    stream.broken = true;
    PlanEnd(id, 0, scheduler_.Random(kQuickest, kUsual));
  } else {
    stream.sides[1].endpoint = listener->second;
  }
  return id;
}

void Network::Send(StreamId id, const Endpoint& from, Message message) {
  const auto found = streams_.find(id);
  if (found == streams_.end() || found->second.broken) {
    return;
  }
  Stream& stream = found->second;
  const std::size_t sender = stream.sides[0].endpoint == &from ? 0 : 1;
  Side& to = stream.sides[1 - sender];
  if (stream.sides[sender].endpoint != &from || stream.sides[sender].mute ||
      to.endpoint == nullptr) {
    return;
  }
  if (auto* push = std::get_if<std::shared_ptr<PushFrame>>(&message);
      push != nullptr && scheduler_.Chance(0.5)) {
    (*push)->Copy();
  }
  to.inbound.push_back(std::move(message));
  if (to.inbound.size() > most_in_flight_) {
    most_in_flight_ = to.inbound.size();
    busiest_ = from.life->name + " to " + to.endpoint->life->name;
  }
  const auto latency = scheduler_.Random(kQuickest, kUsual) + stream.extra;
  // It may be paused in this very step.
  const auto leaves = std::max({scheduler_.Now(), from.life->paused_until, from.life->sends_from});
  to.last = std::max(to.last, leaves + latency);
  scheduler_.At(to.last, to.endpoint->life, [this, id, sender] { Deliver(id, 1 - sender); });
}

void Network::Deliver(StreamId id, std::size_t to) {
  const auto found = streams_.find(id);
  if (found == streams_.end() || found->second.sides[to].inbound.empty()) {
    return;  // lost, or the end has been closed
  }
  Side& side = found->second.sides[to];
  Message message = std::move(side.inbound.front());
  side.inbound.pop_front();
  scheduler_.Record(side.endpoint->life->name, NameOf(message), id);
  side.endpoint->OnMessage(id, found->second.kind, message);
}

void Network::PlanEnd(StreamId id, std::size_t to, Clock::Duration delay) {
  Side& side = streams_.at(id).sides[to];
  if (side.endpoint != nullptr) {
    scheduler_.At(std::max(side.last, scheduler_.Now() + delay),
                  side.endpoint->life,
                  [this, id, to] { End(id, to); });
  }
}

void Network::End(StreamId id, std::size_t to) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) {
    return;
  }
  Endpoint* const endpoint = std::exchange(found->second.sides[to].endpoint, nullptr);
  found->second.sides[to].inbound.clear();
  const StreamKind kind = found->second.kind;
  EraseIfDone(id);
  if (endpoint != nullptr) {
    scheduler_.Record(endpoint->life->name, "stream ended", id);
    endpoint->OnEnded(id, kind);
  }
}

void Network::EraseIfDone(StreamId id) {
  const Stream& stream = streams_.at(id);
  if (stream.sides[0].endpoint == nullptr && stream.sides[1].endpoint == nullptr) {
    streams_.erase(id);
  }
}

void Network::Close(StreamId id, const Endpoint& from) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) {
    return;
  }
  for (std::size_t side = 0; side < 2; ++side) {
    if (found->second.sides[side].endpoint == &from) {
      found->second.sides[side].endpoint = nullptr;
      found->second.sides[side].inbound.clear();
      for (Message& message : found->second.sides[1 - side].inbound) {
        if (auto* push = std::get_if<std::shared_ptr<PushFrame>>(&message)) {
          (*push)->Copy();
        }
      }
      if (!found->second.broken) {
        PlanEnd(id, 1 - side, scheduler_.Random(kQuickest, kUsual));
      }
    }
  }
  EraseIfDone(id);
}

void Network::Remove(const Endpoint& endpoint) {
  std::erase_if(listeners_, [&](const auto& entry) { return entry.second == &endpoint; });
  for (const StreamId id : OpenStreams()) {
    Stream& stream = streams_.at(id);
    for (std::size_t side = 0; side < 2; ++side) {
      if (stream.sides[side].endpoint != &endpoint) {
        continue;
      }
      if (scheduler_.Chance(0.5)) {
        stream.sides[1 - side].inbound.clear();
      }
      Close(id, endpoint);
      break;
    }
  }
}

std::vector<StreamId> Network::OpenStreams() const {
  std::vector<StreamId> ids;
  for (const auto& [id, stream] : streams_) {
    ids.push_back(id);
  }
  return ids;
}

std::vector<StreamId> Network::StreamsOf(const Endpoint& endpoint) const {
  std::vector<StreamId> ids;
  for (const auto& [id, stream] : streams_) {
    if (std::ranges::find(stream.sides, &endpoint, &Side::endpoint) != stream.sides.end()) {
      ids.push_back(id);
    }
  }
  return ids;
}

bool Network::IsClient(StreamId id, const Endpoint& endpoint) const {
  return streams_.at(id).sides[0].endpoint == &endpoint;
}

void Network::Break(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end() || found->second.broken) {
    return;
  }
  found->second.broken = true;
  for (std::size_t side = 0; side < 2; ++side) {
    found->second.sides[side].inbound.clear();
    found->second.sides[side].last = scheduler_.Now();
    const bool late = scheduler_.Chance(0.3);
    PlanEnd(id, side, scheduler_.Random(kQuickest, late ? milliseconds(4000) : milliseconds(20)));
  }
}

void Network::BreakAll(const Endpoint& endpoint) {
  for (const StreamId id : OpenStreams()) {
    const Stream& stream = streams_.at(id);
    if (stream.sides[0].endpoint == &endpoint || stream.sides[1].endpoint == &endpoint) {
      Break(id);
    }
  }
}

void Network::Silence(StreamId id, bool client_side, Clock::Duration delay) {
  const auto found = streams_.find(id);
  if (found != streams_.end()) {
    found->second.sides[client_side ? 0 : 1].mute = true;
    scheduler_.After(delay, nullptr, [this, id] { Break(id); });
  }
}

void Network::Slow(StreamId id, Clock::Duration extra) {
  if (const auto found = streams_.find(id); found != streams_.end()) {
    found->second.extra = extra;
  }
}

}  // namespace adamant::simulation
